#include "core/ops/define.h"
#include "core/ops/math.h"

namespace cuvil::ops {

OpDef define_softplus() {
  OpDef d = unary("Softplus", "y = ln(1 + e^x).", real_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return math::softplus(x[0]); };
  d.samples = [] {
    return unary_samples({-20, -2, 0, 0.5, 100}, {2.06115362e-09, 0.126928011, 0.693147181, 0.974076984, 100});
  };
  return d;
}

}  // namespace cuvil::ops
