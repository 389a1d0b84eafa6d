#include "core/ops/reduction.h"

namespace cuvil::ops {

OpDef define_reduce_prod() {
  OpDef d = reduction("ReduceProd", "y = product of x over axes.", number_dtypes(),
                      Reduction{kernel::Op::mul, nullptr, nullptr});
  d.samples = [] {
    std::vector<Sample> all = reduction_samples({1, -2, 0.5, 3, 0.25, -1}, {-1, -0.75});
    append(all, reduction_samples({1, -2, 5, 3, 0, -1}, {-10, 0}, DType::i32), "i32_");
    return all;
  };
  return d;
}

}  // namespace cuvil::ops
