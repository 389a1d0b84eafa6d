// What matmul schedules read from a node.
#pragma once

#include <functional>
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

/// The extents of the result's axes but rows and columns together; a symbolic one counts 1 in the number.
int64_t leading_extent(const Product& p);
Expr leading_extent(LowerContext& c, const Product& p);
/// The result's index at position `lead` of the leading axes, row and column 0.
std::vector<Expr> split_leading(LowerContext& c, const Product& p, Expr lead);

/// The rows of row tile `tile` of `rows` rows: `body` gets the first row, the number of rows, and how many of the tile
/// lie before it. Where fewer are left, a narrower tile; several, if m is symbolic.
void cover_row_tile(LowerContext& c, const Product& p, int rows, const Expr& tile,
                    const std::function<void(const Expr& row, int rows, const Expr& before)>& body);

}  // namespace cuvil::schedules
