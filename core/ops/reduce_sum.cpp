#include "core/ops/reduction.h"

namespace cuvil::ops {

OpDef define_reduce_sum() {
  OpDef d = reduction("ReduceSum", "y = sum of x over axes.", number_dtypes(), Reduction{});
  d.samples = [] {
    std::vector<Sample> all = reduction_samples({1, -2, 0.5, 3, 0.25, -1}, {-0.5, 2.25});
    append(all, reduction_samples({1, -2, 5, 3, 0, -1}, {4, 2}, DType::i32), "i32_");
    return all;
  };
  return d;
}

}  // namespace cuvil::ops
