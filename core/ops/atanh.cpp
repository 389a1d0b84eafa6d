#include <cmath>

#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_atanh() {
  OpDef d = unary("Atanh", "y = artanh x; NaN outside of [-1, 1].", float_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return kernel::make(kernel::Op::atanh, {x[0]}); };
  d.samples = [] {
    return unary_samples({-0.9, -0.5, 0, 0.25, 2}, {-1.47221936, -0.549306144, 0, 0.255412812, NAN}, 1e-05, {},
                         {-0.99, 0.99});
  };
  return d;
}

}  // namespace cuvil::ops
