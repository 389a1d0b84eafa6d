#include <cmath>

#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_sqrt() {
  OpDef d = unary("Sqrt", "y = sqrt(x); NaN for x < 0.", real_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return kernel::make(kernel::Op::sqrt, {x[0]}); };
  d.samples = [] { return unary_samples({0, 0.25, 2, 9, -1}, {0, 0.5, 1.41421356, 3, NAN}, 1e-05, {}, {0.01, 4}); };
  return d;
}

}  // namespace cuvil::ops
