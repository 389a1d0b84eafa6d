// Runs kernels through function pointers of the ABI and compares with the interpreter, bit by bit.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/backends/backend.h"
#include "core/base/target_info.h"
#include "core/kernel/ir.h"
#include "tests/backend_cpu/kernels.h"
#include "tests/kernel/random_kernel.h"

namespace cuvil::backends::testing {

using Memory = std::vector<std::vector<unsigned char>>;  ///< one block per parameter

/// Values that go wrong first (zeros of both signs, limits, NaN, infinities, subnormals), then random ones.
std::vector<unsigned char> interesting_values(DType dtype, int64_t count, unsigned seed);
/// One block per parameter: interesting values for `in` and `inout`, a pattern for the others.
Memory make_memory(const kernel::Kernel& kernel, const std::vector<int64_t>& dims, unsigned seed);

/// Runs all phases of a loaded kernel; scratch has the size that the kernel asks for, with guards around it that must
/// survive.
int32_t run(const KernelLibrary& library, const kernel::Kernel& kernel, const std::vector<int64_t>& dims,
            Memory& memory);

/// Bytes are equal; NaNs of any payload are equal.
::testing::AssertionResult equal_memory(const kernel::Kernel& kernel, const Memory& expected, const Memory& actual);

/// What the interpreter makes of the case's kernel: memory before and after, and the code it returns.
struct Interpreted {
  Memory before, after;
  int32_t code = 0;
};
Interpreted interpreted(const kernel::Kernel& kernel, const std::vector<int64_t>& dims, unsigned seed);

/// Every kernel on the CPU backend against the interpreter.
void expect_as_interpreted(const std::vector<Case>& cases, const TargetInfo& target, unsigned seed = 1);

/// `count` random kernels of distinct names; those whose transcendentals have no native code (f64) are left out.
std::vector<kernel::testing::RandomKernel> random_kernels(uint64_t first_seed, int count,
                                                          const kernel::testing::RandomKernelOptions& options);
/// The same for a random kernel's own memory. Transcendentals are those of expand_math(), which code must equal.
Interpreted interpreted(const kernel::testing::RandomKernel& random);

/// "host" and the named targets that this machine runs.
std::vector<std::string> runnable_targets();
/// The host and the least target: those between add little.
std::vector<std::string> widest_and_narrowest();

/// A fresh folder, removed at the end; CUVIL_CACHE_DIR points into it while it lives.
class CacheFolder {
 public:
  CacheFolder();
  ~CacheFolder();
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace cuvil::backends::testing
