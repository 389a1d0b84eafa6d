#include <cmath>

#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_isnan() {
  OpDef d = unary("IsNaN", "y = x is NaN.", real_dtypes());
  d.infer = [](const InferContext& c) { return std::vector<ir::Type>{{DType::boolean, c.in(0).shape, {}}}; };
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return x[0] != x[0]; };
  d.samples = [] { return unary_samples({1, NAN, INFINITY, -2}, {0, 1, 0, 0}); };
  return d;
}

}  // namespace cuvil::ops
