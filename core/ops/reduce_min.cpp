#include "core/ops/reduction.h"

namespace cuvil::ops {

OpDef define_reduce_min() {
  std::vector<DType> dtypes = number_dtypes();
  dtypes.push_back(DType::boolean);
  OpDef d = reduction("ReduceMin", "y = minimum of x over axes; NaN if any is; of nothing the largest value (inf).",
                      dtypes, Reduction{kernel::Op::min, nullptr, nullptr});
  d.samples = [] {
    std::vector<Sample> all = reduction_samples({1, -2, 0.5, 3, 0.25, -1}, {-2, -1});
    append(all, reduction_samples({1, -2, 5, 3, 0, -1}, {-2, -1}, DType::i32), "i32_");
    append(all, reduction_samples({1, 1, 1, 1, 0, 1}, {1, 0}, DType::boolean), "bool_");
    return all;
  };
  return d;
}

}  // namespace cuvil::ops
