// What matmul schedules read from a node.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/schedules/conv_problem.h"

namespace cuvil::schedules {

/// C[batch..., m, n] = sum over k of A[batch..., m, k] * B[batch..., k, n], numpy broadcasting of the batch axes.
struct Product {
  Dim m, n, k;
  int row_axis = 0;           ///< the axis of the result that is cut into row tiles: the last of extent other than 1
  bool transposed_b = false;  ///< B is given as [..., n, k]
  ir::Type a, b, c;
};

/// Reads MatMul; a reason if it is not a product of matrices in f32 with plain layout of A and C. Leading axes are
/// allowed in A; in B only if `batched`; if not, n and k are numbers.
std::optional<std::string> read_product(const ops::Group& group, bool batched, Product& product);

}  // namespace cuvil::schedules
