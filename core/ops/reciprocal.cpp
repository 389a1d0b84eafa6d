#include <cmath>

#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_reciprocal() {
  OpDef d = unary("Reciprocal", "y = 1 / x.", real_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return kernel::constant(x[0].type(), 1) / x[0]; };
  d.samples = [] { return unary_samples({-2, 0, 0.5, 4}, {-0.5, INFINITY, 2, 0.25}, 1e-05, {}, {0.25, 4}); };
  return d;
}

}  // namespace cuvil::ops
