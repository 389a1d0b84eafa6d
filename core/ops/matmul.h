// Sizes of a MatMul node, for its lowering and for schedules.
#pragma once

#include "core/ir/graph.h"

namespace cuvil::ops {

struct MatMulProblem {
  Shape a_batch, b_batch;
  Dim m = 1, n = 1, k = 1;
  bool transpose_a = false, transpose_b = false;
  bool a_vector = false, b_vector = false;  ///< a 1-d operand: m or n is 1 and has no axis in the result
  static MatMulProblem of(const ir::Node& node);
};

}  // namespace cuvil::ops
