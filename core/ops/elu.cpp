#include "core/ops/define.h"
#include "core/ops/math.h"

namespace cuvil::ops {

OpDef define_elu() {
  OpDef d = unary("Elu", "y = x < 0 ? alpha * (e^x - 1) : x.", real_dtypes());
  d.attributes = {optional("alpha", AttrKind::real, "scale below 0", 1.0)};
  d.expr = [](const ir::Node& node, std::span<const kernel::Expr> x) {
    const kernel::Type t = x[0].type();
    return kernel::select(x[0] < kernel::constant(t, 0),
                          math::expm1(x[0]) * kernel::constant(t, node.attr<double>("alpha")), x[0]);
  };
  d.samples = [] { return unary_samples({-2, -0.5, 0, 0.25, 1.5}, {-0.864664717, -0.39346934, 0, 0.25, 1.5}); };
  return d;
}

}  // namespace cuvil::ops
