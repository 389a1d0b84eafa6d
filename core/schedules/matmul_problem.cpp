#include "core/schedules/matmul_problem.h"

#include "core/schedules/tile.h"

namespace cuvil::schedules {

std::optional<std::string> read_product(const ops::Group& group, bool batched, Product& p) {
  if (!group.anchor || group.anchor->op != "MatMul") return "not a matrix product";
  const ir::Node& node = *group.anchor;
  p.a = node.input(0)->type, p.b = node.input(1)->type, p.c = node.output()->type;
  if (p.a.dtype != DType::f32 || p.b.dtype != DType::f32) return "only f32 is scheduled";
  if (p.a.rank() < 2 || p.b.rank() < 2) return "an operand is a vector";
  if (node.attr<int64_t>("transpose_a") != 0) return "the first operand is transposed";
  if (!batched && p.b.rank() != 2) return "the second operand is not one matrix";
  if (!p.a.layout.is_plain() || !stored_type(group).layout.is_plain()) return "the rows are not in plain layout";
  p.transposed_b = node.attr<int64_t>("transpose_b") != 0;
  p.n = p.c.shape.back(), p.k = p.a.shape.back();
  if (!batched) {
    if (!p.n.is_const()) return "the number of columns is symbolic (" + p.n.str() + ")";
    if (!p.k.is_const()) return "the inner dimension is symbolic (" + p.k.str() + ")";
  }
  if (p.k == Dim(0) || p.n == Dim(0)) return "a dimension is 0";
  p.row_axis = p.c.rank() - 2;
  if (!batched) {
    while (p.row_axis > 0 && p.c.shape[static_cast<size_t>(p.row_axis)].as_const() == 1) --p.row_axis;
    if (p.c.shape[static_cast<size_t>(p.row_axis)].as_const() == 1) p.row_axis = p.c.rank() - 2;
  }
  p.m = p.c.shape[static_cast<size_t>(p.row_axis)];
  return {};
}

namespace {
/// Axes before the columns and other than the rows, outermost first.
std::vector<size_t> leading_axes(const Product& p) {
  std::vector<size_t> axes;
  for (int a = 0; a + 1 < p.c.rank(); ++a)
    if (a != p.row_axis) axes.push_back(static_cast<size_t>(a));
  return axes;
}
}  // namespace

int64_t leading_extent(const Product& p) {
  int64_t extent = 1;
  for (size_t a : leading_axes(p)) extent *= p.c.shape[a].as_const().value_or(1);
  return extent;
}

Expr leading_extent(LowerContext& c, const Product& p) {
  Expr extent(1);
  for (size_t a : leading_axes(p)) extent = extent * c.dim(p.c.shape[a]);
  return extent;
}

std::vector<Expr> split_leading(LowerContext& c, const Product& p, Expr lead) {
  std::vector<Expr> index(static_cast<size_t>(p.c.rank()), Expr(0));
  const std::vector<size_t> axes = leading_axes(p);
  for (auto a = axes.rbegin(); a != axes.rend(); ++a) {
    if (p.c.shape[*a].as_const() == 1) continue;
    const Expr extent = c.dim(p.c.shape[*a]);
    const bool outermost = *a == axes.front();
    index[*a] = c.b().let("i", outermost ? lead : lead % extent);
    if (!outermost) lead = kernel::floordiv(lead, extent);
  }
  return index;
}

void cover_row_tile(LowerContext& c, const Product& p, int rows, const Expr& tile,
                    const std::function<void(const Expr& row, int rows, const Expr& before)>& body) {
  Builder& b = c.b();
  const Expr row = b.let("row", tile * Expr(rows));
  const auto m = p.m.as_const();
  if (m && *m % rows == 0) return body(row, rows, Expr(0));
  if (m && *m < rows) return body(row, static_cast<int>(*m), Expr(0));
  const Expr end = c.dim(p.m);
  b.branch(
      row + Expr(rows) <= end, [&] { body(row, rows, Expr(0)); },
      [&] {
        if (m) return body(row, static_cast<int>(*m % rows), Expr(0));
        for (int narrow : remainder_ladder(rows)) {
          const Expr rest = end - row;
          // The bits of the rest, highest first, say which tiles cover it.
          const Expr before = rest - rest % Expr(2 * narrow);
          b.branch(rest % Expr(2 * narrow) >= Expr(narrow), [&] { body(row + before, narrow, before); });
        }
      });
}

}  // namespace cuvil::schedules
