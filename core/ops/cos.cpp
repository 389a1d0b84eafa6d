#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_cos() {
  OpDef d = unary("Cos", "y = cos x.", float_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return kernel::make(kernel::Op::cos, {x[0]}); };
  d.samples = [] {
    return unary_samples({-3, -0.5, 0, 1, 10}, {-0.989992497, 0.877582562, 1, 0.540302306, -0.839071529});
  };
  return d;
}

}  // namespace cuvil::ops
