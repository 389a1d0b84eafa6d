// The interpreter of Kernel IR: exact, the oracle for every backend and schedule.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/kernel/ir.h"

namespace cuvil::kernel {

/// Memory of one parameter: `bytes` bytes at `data`, which the buffer's shape (with dims applied) must fit.
struct Argument {
  void* data = nullptr;
  int64_t bytes = 0;
};

struct ProgramCode;

/// A kernel made ready to run any number of times, from any thread.
///
/// Every access is checked: an index outside its buffer, a lane of a vector outside its buffer (masked-off lanes are
/// not asked), or a read of scratch, reg, work or out memory never written throws InternalError naming kernel, access
/// and index. A vector that crosses the end of the last dimension goes on in the next row, which only a row-major
/// contiguous buffer has. Transcendentals are computed in double by libm and rounded once.
class Interpreter {
 public:
  /// Verifies the kernel.
  explicit Interpreter(const Kernel& kernel);
  ~Interpreter();
  Interpreter(Interpreter&&) noexcept;
  Interpreter& operator=(Interpreter&&) noexcept;

  /// Runs the whole kernel, phase by phase, task by task. Returns what the kernel returns: 0 or the first `fail` code.
  int32_t run(std::span<const Argument> arguments, std::span<const int64_t> dims) const;
  /// Some tasks of one phase, as cuvil_kernel_fn is called: the sizes of the parameters' memory are trusted, and what
  /// other calls wrote counts as written.
  int32_t run_tasks(size_t phase, const void* const* buffers, std::span<const int64_t> dims, int64_t task_begin,
                    int64_t task_end) const;

 private:
  std::unique_ptr<const ProgramCode> code_;
};

/// Interpreter(kernel).run(arguments, dims).
int32_t interpret(const Kernel& kernel, std::span<const Argument> arguments, std::span<const int64_t> dims);

/// Value of an expression over variables only (sizes, task counts). Nullopt if a variable is missing.
std::optional<int64_t> evaluate(const Expr& expr, std::span<const std::pair<Var, int64_t>> values);

}  // namespace cuvil::kernel
