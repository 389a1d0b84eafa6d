#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_neg() {
  OpDef d = unary("Neg", "y = -x. Integers wrap.",
                  {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i64, DType::i32, DType::i16, DType::i8});
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return -x[0]; };
  d.samples = [] {
    std::vector<Sample> all = unary_samples({-2, 0.5, 3}, {2, -0.5, -3});
    append(all, unary_samples(DType::i32, {-2, 0, 7}, {2, 0, -7}), "i32_");
    return all;
  };
  return d;
}

}  // namespace cuvil::ops
