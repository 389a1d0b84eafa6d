#include "core/ops/reduction.h"

namespace cuvil::ops {

OpDef define_reduce_max() {
  std::vector<DType> dtypes = number_dtypes();
  dtypes.push_back(DType::boolean);
  OpDef d = reduction("ReduceMax", "y = maximum of x over axes; NaN if any is; of nothing the least value (-inf).",
                      dtypes, Reduction{kernel::Op::max, nullptr, nullptr});
  d.samples = [] {
    std::vector<Sample> all = reduction_samples({1, -2, 0.5, 3, 0.25, -1}, {1, 3});
    append(all, reduction_samples({1, -2, 5, 3, 0, -1}, {5, 3}, DType::i32), "i32_");
    append(all, reduction_samples({0, 0, 0, 1, 0, 0}, {0, 1}, DType::boolean), "bool_");
    return all;
  };
  return d;
}

}  // namespace cuvil::ops
