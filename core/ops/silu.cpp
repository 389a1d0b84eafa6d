#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_silu() {
  OpDef d = unary("Silu", "y = x * sigmoid(alpha * x) (Swish).", real_dtypes());
  d.attributes = {optional("alpha", AttrKind::real, "factor in the sigmoid", 1.0)};
  d.expr = [](const ir::Node& node, std::span<const kernel::Expr> x) {
    const double alpha = node.attr<double>("alpha");
    const kernel::Expr z = alpha == 1 ? x[0] : x[0] * kernel::constant(x[0].type(), alpha);
    return x[0] * kernel::make(kernel::Op::sigmoid, {z});
  };
  d.samples = [] {
    return unary_samples({-2, -0.5, 0, 0.25, 1.5}, {-0.238405844, -0.188770334, 0, 0.140544125, 1.22636171});
  };
  return d;
}

}  // namespace cuvil::ops
