#include "core/ops/reduction.h"

namespace cuvil::ops {

OpDef define_reduce_l2() {
  OpDef d =
      reduction("ReduceL2", "y = sqrt(sum of x^2 over axes).", real_dtypes(),
                Reduction{kernel::Op::add, [](kernel::Expr x) { return x * x; },
                          [](kernel::Expr total, kernel::Expr) { return kernel::make(kernel::Op::sqrt, {total}); }});
  d.samples = [] { return reduction_samples({1, -2, 0.5, 3, 0.25, -1}, {2.29128785, 3.17214439}); };
  return d;
}

}  // namespace cuvil::ops
