#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_relu() {
  OpDef d = unary("Relu", "y = x < 0 ? 0 : x; NaN stays NaN.", number_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) {
    const kernel::Expr zero = kernel::constant(x[0].type(), 0);
    return kernel::select(x[0] < zero, zero, x[0]);
  };
  d.samples = [] { return unary_samples({-1.5, -0.0, 0, 2, -1e-30}, {0, 0, 0, 2, 0}); };
  return d;
}

}  // namespace cuvil::ops
