#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_mul() {
  OpDef d = binary("Mul", "y = a * b. Integers wrap.", number_dtypes());
  d.traits |= kCommutative;
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return x[0] * x[1]; };
  d.samples = [] {
    std::vector<Sample> all = binary_samples(DType::f32, {1, -2, 0.5}, {2, 2, -0.25}, {2, -4, -0.125});
    append(all, binary_samples(DType::i32, {5, -3, 65536}, {7, -3, 65536}, {35, 9, 0}), "i32_");
    return all;
  };
  return d;
}

}  // namespace cuvil::ops
