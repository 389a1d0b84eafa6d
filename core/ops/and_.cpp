#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_and_() {
  OpDef d = binary("And", "y = a and b, of truth values.", {DType::boolean});
  d.traits |= kCommutative;
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return x[0] & x[1]; };
  d.samples = [] { return binary_samples(DType::boolean, {0, 0, 1, 1}, {0, 1, 0, 1}, {0, 0, 0, 1}); };
  return d;
}

}  // namespace cuvil::ops
