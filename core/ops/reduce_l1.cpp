#include "core/ops/reduction.h"

namespace cuvil::ops {

OpDef define_reduce_l1() {
  OpDef d = reduction(
      "ReduceL1", "y = sum of |x| over axes.", number_dtypes(),
      Reduction{kernel::Op::add,
                [](kernel::Expr x) { return is_unsigned_int(x.type().dtype) ? x : kernel::make(kernel::Op::abs, {x}); },
                nullptr});
  d.samples = [] {
    std::vector<Sample> all = reduction_samples({1, -2, 0.5, 3, 0.25, -1}, {3.5, 4.25});
    append(all, reduction_samples({1, -2, 5, 3, 0, -1}, {8, 4}, DType::i32), "i32_");
    return all;
  };
  return d;
}

}  // namespace cuvil::ops
