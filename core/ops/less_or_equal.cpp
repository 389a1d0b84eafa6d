#include <cmath>

#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_less_or_equal() {
  OpDef d = comparison("LessOrEqual", "y = a <= b; false if either is NaN.", number_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return x[0] <= x[1]; };
  d.samples = [] {
    std::vector<Sample> all = binary_samples(DType::f32, {1, 2, 3, NAN}, {2, 2, 2, 1}, {1, 1, 0, 0});
    append(all, binary_samples(DType::i32, {1, 2, 3}, {2, 2, 2}, {1, 1, 0}), "i32_");
    return all;
  };
  return d;
}

}  // namespace cuvil::ops
