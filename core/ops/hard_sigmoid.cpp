#include "core/ops/define.h"
#include "core/ops/math.h"

namespace cuvil::ops {

OpDef define_hard_sigmoid() {
  OpDef d = unary("HardSigmoid", "y = max(0, min(1, alpha * x + beta)).", real_dtypes());
  d.attributes = {optional("alpha", AttrKind::real, "slope", 0.2), optional("beta", AttrKind::real, "offset", 0.5)};
  d.expr = [](const ir::Node& node, std::span<const kernel::Expr> x) {
    const kernel::Type t = x[0].type();
    return math::clamp(
        x[0] * kernel::constant(t, node.attr<double>("alpha")) + kernel::constant(t, node.attr<double>("beta")),
        kernel::constant(t, 0), kernel::constant(t, 1));
  };
  d.samples = [] { return unary_samples({-3, -1, 0, 1, 3}, {0, 0.3, 0.5, 0.7, 1}); };
  return d;
}

}  // namespace cuvil::ops
