#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_exp() {
  OpDef d = unary("Exp", "y = e^x.", real_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return kernel::make(kernel::Op::exp, {x[0]}); };
  d.samples = [] {
    return unary_samples({-90, -2, 0, 1, 3}, {8.19401262e-40, 0.135335283, 1, 2.71828183, 20.0855369});
  };
  return d;
}

}  // namespace cuvil::ops
