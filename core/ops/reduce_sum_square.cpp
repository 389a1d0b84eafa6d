#include "core/ops/reduction.h"

namespace cuvil::ops {

OpDef define_reduce_sum_square() {
  OpDef d = reduction("ReduceSumSquare", "y = sum of x^2 over axes.", number_dtypes(),
                      Reduction{kernel::Op::add, [](kernel::Expr x) { return x * x; }, nullptr});
  d.samples = [] {
    std::vector<Sample> all = reduction_samples({1, -2, 0.5, 3, 0.25, -1}, {5.25, 10.0625});
    append(all, reduction_samples({1, -2, 5, 3, 0, -1}, {30, 10}, DType::i32), "i32_");
    return all;
  };
  return d;
}

}  // namespace cuvil::ops
