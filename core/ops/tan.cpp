#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_tan() {
  OpDef d = unary("Tan", "y = tan x.", float_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return kernel::make(kernel::Op::tan, {x[0]}); };
  d.samples = [] {
    return unary_samples({-1, -0.5, 0, 0.25, 1}, {-1.55740772, -0.54630249, 0, 0.255341921, 1.55740772}, 1e-05, {},
                         {-1.2, 1.2});
  };
  return d;
}

}  // namespace cuvil::ops
