#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_bitwise_or() {
  OpDef d = binary("BitwiseOr", "y = a | b, bit by bit.", int_dtypes());
  d.traits |= kCommutative;
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return x[0] | x[1]; };
  d.samples = [] { return binary_samples(DType::i32, {12, -1, 5}, {10, 6, 0}, {14, -1, 5}); };
  return d;
}

}  // namespace cuvil::ops
