#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_floor() {
  OpDef d = unary("Floor", "y = the largest integer <= x.", real_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return kernel::make(kernel::Op::floor, {x[0]}); };
  d.samples = [] { return unary_samples({-1.5, -0.0, 0.5, 2, 2.75}, {-2, -0.0, 0, 2, 2}); };
  return d;
}

}  // namespace cuvil::ops
