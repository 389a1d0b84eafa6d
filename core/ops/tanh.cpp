#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_tanh() {
  OpDef d = unary("Tanh", "y = tanh x.", real_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return kernel::make(kernel::Op::tanh, {x[0]}); };
  d.samples = [] { return unary_samples({-20, -0.5, 0, 0.25, 3}, {-1, -0.462117157, 0, 0.244918662, 0.995054754}); };
  return d;
}

}  // namespace cuvil::ops
