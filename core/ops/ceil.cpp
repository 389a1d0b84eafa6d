#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_ceil() {
  OpDef d = unary("Ceil", "y = the smallest integer >= x.", real_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return kernel::make(kernel::Op::ceil, {x[0]}); };
  d.samples = [] { return unary_samples({-1.5, 0, 0.5, 2, 2.75}, {-1, 0, 1, 2, 3}); };
  return d;
}

}  // namespace cuvil::ops
