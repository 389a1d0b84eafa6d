#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_add() {
  OpDef d = binary("Add", "y = a + b. Integers wrap.", number_dtypes());
  d.traits |= kCommutative;
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return x[0] + x[1]; };
  d.samples = [] { return binary_samples(DType::f32, {1, -2, 0.5, 3}, {2, 2, 0.25, -5}, {3, 0, 0.75, -2}); };
  return d;
}

}  // namespace cuvil::ops
