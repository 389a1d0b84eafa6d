#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_asinh() {
  OpDef d = unary("Asinh", "y = arsinh x.", float_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return kernel::make(kernel::Op::asinh, {x[0]}); };
  d.samples = [] {
    return unary_samples({-3, -0.5, 0, 0.25, 2}, {-1.81844646, -0.481211825, 0, 0.247466462, 1.44363548});
  };
  return d;
}

}  // namespace cuvil::ops
