#include "core/schedules/matmul_problem.h"

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

}  // namespace cuvil::schedules
