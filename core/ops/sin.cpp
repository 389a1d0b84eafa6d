#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_sin() {
  OpDef d = unary("Sin", "y = sin x.", float_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return kernel::make(kernel::Op::sin, {x[0]}); };
  d.samples = [] {
    return unary_samples({-3, -0.5, 0, 1, 10}, {-0.141120008, -0.479425539, 0, 0.841470985, -0.544021111});
  };
  return d;
}

}  // namespace cuvil::ops
