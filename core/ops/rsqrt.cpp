#include <cmath>

#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_rsqrt() {
  OpDef d = unary("Rsqrt", "y = 1 / sqrt(x).", real_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) {
    return kernel::constant(x[0].type(), 1) / kernel::make(kernel::Op::sqrt, {x[0]});
  };
  d.samples = [] { return unary_samples({0, 0.25, 1, 4}, {INFINITY, 2, 1, 0.5}, 1e-05, {}, {0.25, 4}); };
  return d;
}

}  // namespace cuvil::ops
