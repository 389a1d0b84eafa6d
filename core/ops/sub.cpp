#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_sub() {
  OpDef d = binary("Sub", "y = a - b. Integers wrap.", number_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return x[0] - x[1]; };
  d.samples = [] {
    std::vector<Sample> all = binary_samples(DType::f32, {1, -2, 0.5}, {2, 2, -0.25}, {-1, -4, 0.75});
    append(all, binary_samples(DType::i32, {5, -3, 0}, {7, -3, 1}, {-2, 0, -1}), "i32_");
    return all;
  };
  return d;
}

}  // namespace cuvil::ops
