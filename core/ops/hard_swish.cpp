#include "core/ops/define.h"
#include "core/ops/math.h"

namespace cuvil::ops {

OpDef define_hard_swish() {
  OpDef d = unary("HardSwish", "y = x * max(0, min(1, x / 6 + 1/2)).", real_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) {
    const kernel::Type t = x[0].type();
    return x[0] * math::clamp(x[0] * kernel::constant(t, 1.0 / 6) + kernel::constant(t, 0.5), kernel::constant(t, 0),
                              kernel::constant(t, 1));
  };
  d.samples = [] { return unary_samples({-4, -1, 0, 1, 4}, {-0.0, -0.333333333, 0, 0.666666667, 4}); };
  return d;
}

}  // namespace cuvil::ops
