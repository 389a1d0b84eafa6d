#include "core/ops/data_movement.h"

namespace cuvil::ops {

using kernel::Expr;

Expr flatten(LowerContext& c, const std::vector<Expr>& index, const Shape& shape) {
  Expr number = 0;
  for (size_t i = 0; i < shape.size(); ++i) number = i == 0 ? index[0] : number * c.dim(shape[i]) + index[i];
  return number;
}

std::vector<Expr> unflatten(LowerContext& c, const Expr& number, const Shape& shape) {
  std::vector<Expr> index(shape.size());
  if (shape.empty()) return index;
  Expr rest = c.b().let("n", number);
  for (size_t i = shape.size(); i-- > 1;) {
    const Expr size = c.dim(shape[i]);
    index[i] = rest % size;
    rest = kernel::floordiv(rest, size);
  }
  index[0] = rest;
  return index;
}

}  // namespace cuvil::ops
