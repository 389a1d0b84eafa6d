#include "core/ops/define.h"
#include "core/ops/math.h"

namespace cuvil::ops {

OpDef define_mish() {
  OpDef d = unary("Mish", "y = x * tanh(ln(1 + e^x)).", real_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) {
    return x[0] * kernel::make(kernel::Op::tanh, {math::softplus(x[0])});
  };
  d.samples = [] {
    return unary_samples({-2, -0.5, 0, 0.25, 1.5}, {-0.252501483, -0.220743775, 0, 0.16957241, 1.40337827});
  };
  return d;
}

}  // namespace cuvil::ops
