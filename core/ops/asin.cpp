#include <cmath>

#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_asin() {
  OpDef d = unary("Asin", "y = arcsin x; NaN outside of [-1, 1].", float_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return kernel::make(kernel::Op::asin, {x[0]}); };
  d.samples = [] {
    return unary_samples({-1, -0.5, 0, 0.25, 2}, {-1.57079633, -0.523598776, 0, 0.252680255, NAN}, 1e-05, {},
                         {-0.99, 0.99});
  };
  return d;
}

}  // namespace cuvil::ops
