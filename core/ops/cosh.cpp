#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_cosh() {
  OpDef d = unary("Cosh", "y = cosh x.", real_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return kernel::make(kernel::Op::cosh, {x[0]}); };
  d.samples = [] { return unary_samples({-3, -0.5, 0, 0.25, 2}, {10.067662, 1.12762597, 1, 1.0314131, 3.76219569}); };
  return d;
}

}  // namespace cuvil::ops
