#include <cmath>

#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_acosh() {
  OpDef d = unary("Acosh", "y = arcosh x; NaN below 1.", float_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return kernel::make(kernel::Op::acosh, {x[0]}); };
  d.samples = [] {
    return unary_samples({1, 1.5, 2, 10, 0.5}, {0, 0.96242365, 1.3169579, 2.99322285, NAN}, 1e-05, {}, {1, 5});
  };
  return d;
}

}  // namespace cuvil::ops
