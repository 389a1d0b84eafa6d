#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_leaky_relu() {
  OpDef d = unary("LeakyRelu", "y = x < 0 ? alpha * x : x.", real_dtypes());
  d.attributes = {optional("alpha", AttrKind::real, "slope below 0", 0.01)};
  d.expr = [](const ir::Node& node, std::span<const kernel::Expr> x) {
    const kernel::Type t = x[0].type();
    return kernel::select(x[0] < kernel::constant(t, 0), x[0] * kernel::constant(t, node.attr<double>("alpha")), x[0]);
  };
  d.samples = [] { return unary_samples({-2, -0.5, 0, 0.25, 1.5}, {-0.02, -0.005, 0, 0.25, 1.5}); };
  return d;
}

}  // namespace cuvil::ops
