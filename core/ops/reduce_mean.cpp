#include "core/ops/reduction.h"

namespace cuvil::ops {

OpDef define_reduce_mean() {
  OpDef d = reduction("ReduceMean", "y = mean of x over axes; of integers truncated.", number_dtypes(),
                      Reduction{kernel::Op::add, nullptr, [](kernel::Expr total, kernel::Expr count) {
                                  return total / kernel::broadcast(kernel::cast(total.type().element(), count),
                                                                   total.type().lanes);
                                }});
  d.samples = [] {
    std::vector<Sample> all = reduction_samples({1, -2, 0.5, 3, 0.25, -1}, {-0.166666667, 0.75});
    append(all, reduction_samples({1, -2, 5, 3, 0, -1}, {1, 0}, DType::i32), "i32_");
    return all;
  };
  return d;
}

}  // namespace cuvil::ops
