#include <cmath>

#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_acos() {
  OpDef d = unary("Acos", "y = arccos x; NaN outside of [-1, 1].", float_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return kernel::make(kernel::Op::acos, {x[0]}); };
  d.samples = [] {
    return unary_samples({-1, -0.5, 0, 0.25, 2}, {3.14159265, 2.0943951, 1.57079633, 1.31811607, NAN}, 1e-05, {},
                         {-0.99, 0.99});
  };
  return d;
}

}  // namespace cuvil::ops
