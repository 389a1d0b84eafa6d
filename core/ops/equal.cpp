#include <cmath>

#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_equal() {
  OpDef d = comparison("Equal", "y = a == b; false if either is NaN.", all_dtypes());
  d.traits |= kCommutative;
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return x[0] == x[1]; };
  d.samples = [] {
    std::vector<Sample> all = binary_samples(DType::f32, {1, 2, 3, NAN}, {2, 2, 2, NAN}, {0, 1, 0, 0});
    append(all, binary_samples(DType::i32, {1, 2, 3}, {2, 2, 2}, {0, 1, 0}), "i32_");
    return all;
  };
  return d;
}

}  // namespace cuvil::ops
