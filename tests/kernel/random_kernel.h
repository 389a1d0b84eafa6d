// Random kernels for comparing backends with the interpreter: deterministic by seed, never out of bounds, never reading
// what was not written, and free of what Kernel IR leaves open (the sign of a zero that min or max gives never reaches
// a division or a bitcast, and NaN payloads never reach a bitcast).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/kernel/ir.h"

namespace cuvil::kernel::testing {

struct RandomKernelOptions {
  bool halves = false;           ///< f16 and bf16
  bool transcendentals = false;  ///< results then differ between backends within their error bounds
  bool dots = true;              ///< dot products of bytes
  int size = 12;                 ///< statements per phase, about
};

struct RandomKernel {
  Kernel kernel;  ///< valid for any dims >= 1
  std::vector<int64_t> dims;
  std::vector<std::vector<unsigned char>> memory;  ///< contents of the parameters for these dims, outputs filled too
};

RandomKernel random_kernel(uint64_t seed, const RandomKernelOptions& options = {});

/// Where two contents of the kernel's parameters differ ("y1[3]: 2.5 and 3"), or empty. All NaNs are equal, and so are
/// both zeros; workspaces do not count.
std::string first_difference(const Kernel& kernel, const std::vector<std::vector<unsigned char>>& a,
                             const std::vector<std::vector<unsigned char>>& b);

}  // namespace cuvil::kernel::testing
