// What a backend is: it says which kernels it can run, and turns them into code.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/abi/abi.h"
#include "core/base/target_info.h"
#include "core/kernel/ir.h"

namespace cuvil::backends {

/// Name -> function pointer for kernels of one plan: all that the executor knows of code. Owns the code; functions stay
/// valid as long as it lives.
class KernelLibrary {
 public:
  virtual ~KernelLibrary() = default;
  /// Symbol "NAME_pI" of phase I of kernel NAME; null if there is none.
  virtual cuvil_kernel_fn find(std::string_view symbol) const = 0;
};

struct CompileStatistics {
  int kernels = 0;     ///< asked for
  int unique = 0;      ///< after deduplication of equal kernels
  int from_cache = 0;  ///< of the unique ones
  double seconds = 0;
  int64_t code_bytes = 0;
};

/// Code in a form that can be kept: a position-independent shared object that exports the phases' symbols and imports
/// none.
struct CodeObject {
  std::vector<uint8_t> shared_object;
  CompileStatistics statistics;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  /// Nothing, or the reason (a sentence for users) why this kernel cannot be compiled for the target.
  virtual std::optional<std::string> refuse(const kernel::Kernel& kernel, const TargetInfo& target) const = 0;
  /// Makes the kernels callable in this process. Kernels are compiled in parallel, equal ones once.
  virtual std::unique_ptr<KernelLibrary> load(std::span<const kernel::Kernel> kernels, const TargetInfo& target,
                                              CompileStatistics* statistics = nullptr) const = 0;
  /// Ahead-of-time code; throws UnsupportedError by a backend that has none (the interpreter).
  virtual CodeObject compile(std::span<const kernel::Kernel> kernels, const TargetInfo& target) const = 0;
};

}  // namespace cuvil::backends
