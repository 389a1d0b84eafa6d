// The interpreter of Kernel IR: slow and exact, the oracle for every backend and schedule.
#pragma once

#include <cstdint>
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

/// Runs the whole kernel, phase by phase, task by task. Every access is checked: an index outside its buffer, a vector
/// that crosses the end of its last dimension (unless those lanes are masked off; padding is not an excuse), or a read
/// of scratch/reg memory never written throws InternalError naming kernel, statement and index. Vectors along the last
/// dimension may cross into the next row only where the buffer is contiguous.
/// Transcendentals are computed in double by libm and rounded once. Returns what the kernel returns: 0 or a `fail`
/// code.
int32_t interpret(const Kernel& kernel, std::span<const Argument> arguments, std::span<const int64_t> dims);

/// Value of an expression over variables only (sizes, task counts). Nullopt if a variable is missing.
std::optional<int64_t> evaluate(const Expr& expr, std::span<const std::pair<Var, int64_t>> values);

}  // namespace cuvil::kernel
