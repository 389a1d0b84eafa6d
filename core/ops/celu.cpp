#include "core/ops/define.h"
#include "core/ops/math.h"

namespace cuvil::ops {

OpDef define_celu() {
  OpDef d = unary("Celu", "y = max(0, x) + min(0, alpha * (e^(x/alpha) - 1)).", real_dtypes());
  d.attributes = {optional("alpha", AttrKind::real, "scale below 0, not 0", 1.0)};
  d.expr = [](const ir::Node& node, std::span<const kernel::Expr> x) {
    const kernel::Type t = x[0].type();
    const kernel::Expr alpha = kernel::constant(t, node.attr<double>("alpha"));
    return kernel::select(x[0] < kernel::constant(t, 0), math::expm1(x[0] / alpha) * alpha, x[0]);
  };
  d.samples = [] {
    return unary_samples({-2, -0.5, 0, 0.25, 1.5}, {-1.26424112, -0.442398434, 0, 0.25, 1.5}, 1e-05, {{"alpha", 2.0}});
  };
  return d;
}

}  // namespace cuvil::ops
