#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_softsign() {
  OpDef d = unary("Softsign", "y = x / (1 + |x|).", real_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) {
    return x[0] / (kernel::constant(x[0].type(), 1) + kernel::make(kernel::Op::abs, {x[0]}));
  };
  d.samples = [] { return unary_samples({-2, -0.5, 0, 0.25, 1.5}, {-0.666666667, -0.333333333, 0, 0.2, 0.6}); };
  return d;
}

}  // namespace cuvil::ops
