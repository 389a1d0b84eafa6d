#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_thresholded_relu() {
  OpDef d = unary("ThresholdedRelu", "y = x > alpha ? x : 0.", real_dtypes());
  d.attributes = {optional("alpha", AttrKind::real, "threshold", 1.0)};
  d.expr = [](const ir::Node& node, std::span<const kernel::Expr> x) {
    const kernel::Type t = x[0].type();
    return kernel::select(x[0] > kernel::constant(t, node.attr<double>("alpha")), x[0], kernel::constant(t, 0));
  };
  d.samples = [] { return unary_samples({-2, 0.5, 1, 1.5}, {0, 0, 0, 1.5}); };
  return d;
}

}  // namespace cuvil::ops
