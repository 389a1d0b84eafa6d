#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_erf() {
  OpDef d = unary("Erf", "y = 2/sqrt(pi) * integral of e^-t^2 from 0 to x.", float_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return kernel::make(kernel::Op::erf, {x[0]}); };
  d.samples = [] {
    return unary_samples({-4, -0.5, 0, 0.25, 1.5}, {-0.999999985, -0.520499878, 0, 0.27632639, 0.966105146});
  };
  return d;
}

}  // namespace cuvil::ops
