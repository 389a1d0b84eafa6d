#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_sigmoid() {
  OpDef d = unary("Sigmoid", "y = 1 / (1 + e^-x).", real_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return kernel::make(kernel::Op::sigmoid, {x[0]}); };
  d.samples = [] {
    return unary_samples({-100, -2, 0, 0.5, 20}, {3.72007598e-44, 0.119202922, 0.5, 0.622459331, 0.999999998});
  };
  return d;
}

}  // namespace cuvil::ops
