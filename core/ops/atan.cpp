#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_atan() {
  OpDef d = unary("Atan", "y = arctan x.", float_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return kernel::make(kernel::Op::atan, {x[0]}); };
  d.samples = [] {
    return unary_samples({-10, -0.5, 0, 0.25, 1}, {-1.47112767, -0.463647609, 0, 0.244978663, 0.785398163});
  };
  return d;
}

}  // namespace cuvil::ops
