#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_round() {
  OpDef d = unary("Round", "y = the nearest integer, ties to even.", real_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return kernel::make(kernel::Op::round, {x[0]}); };
  d.samples = [] { return unary_samples({-1.5, -0.5, 0.5, 1.5, 2.75}, {-2, -0.0, 0, 2, 3}); };
  return d;
}

}  // namespace cuvil::ops
