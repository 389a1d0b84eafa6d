#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_sinh() {
  OpDef d = unary("Sinh", "y = sinh x.", real_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return kernel::make(kernel::Op::sinh, {x[0]}); };
  d.samples = [] {
    return unary_samples({-3, -0.5, 0, 0.25, 2}, {-10.0178749, -0.521095305, 0, 0.252612317, 3.62686041});
  };
  return d;
}

}  // namespace cuvil::ops
