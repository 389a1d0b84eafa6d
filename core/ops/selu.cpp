#include "core/ops/define.h"
#include "core/ops/math.h"

namespace cuvil::ops {

OpDef define_selu() {
  OpDef d = unary("Selu", "y = gamma * (x <= 0 ? alpha * (e^x - 1) : x).", real_dtypes());
  d.attributes = {optional("alpha", AttrKind::real, "scale below 0", 1.67326319217681884765625),
                  optional("gamma", AttrKind::real, "scale", 1.05070102214813232421875)};
  d.expr = [](const ir::Node& node, std::span<const kernel::Expr> x) {
    const kernel::Type t = x[0].type();
    const double alpha = node.attr<double>("alpha"), gamma = node.attr<double>("gamma");
    return kernel::select(x[0] <= kernel::constant(t, 0), math::expm1(x[0]) * kernel::constant(t, alpha * gamma),
                          x[0] * kernel::constant(t, gamma));
  };
  d.samples = [] {
    return unary_samples({-2, -0.5, 0, 0.25, 1.5}, {-1.52016647, -0.691758188, 0, 0.262675247, 1.57605148});
  };
  return d;
}

}  // namespace cuvil::ops
