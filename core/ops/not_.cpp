#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_not_() {
  OpDef d = unary("Not", "y = not x.", {DType::boolean});
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return kernel::logical_not(x[0]); };
  d.samples = [] { return unary_samples(DType::boolean, {0, 1}, {1, 0}); };
  return d;
}

}  // namespace cuvil::ops
