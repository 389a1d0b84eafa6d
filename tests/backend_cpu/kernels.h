// Kernels that together hold every operator, cast and access of every element type, scalar and vector.
#pragma once

#include <vector>

#include "core/kernel/ir.h"

namespace cuvil::backends::testing {

struct Case {
  kernel::Kernel kernel;
  std::vector<std::vector<int64_t>> dims;  ///< one set of values per run
};

std::vector<Case> typed_cases(DType dtype);
/// Dot products, fail, prefetch.
std::vector<Case> other_cases();

}  // namespace cuvil::backends::testing
