#include "core/ops/reduction.h"

namespace cuvil::ops {

OpDef define_reduce_log_sum() {
  OpDef d = reduction("ReduceLogSum", "y = ln(sum of x over axes).", real_dtypes(),
                      Reduction{kernel::Op::add, nullptr, [](kernel::Expr total, kernel::Expr) {
                                  return kernel::make(kernel::Op::log, {total});
                                }});
  d.samples = [] { return reduction_samples({1, 2, 0.5, 3, 0.25, 1}, {1.25276297, 1.44691898}, DType::f32, {0.1, 2}); };
  return d;
}

}  // namespace cuvil::ops
