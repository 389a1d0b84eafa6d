#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_bitwise_not() {
  OpDef d = unary("BitwiseNot", "y = ~x, bit by bit.", int_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return kernel::make(kernel::Op::bit_not, {x[0]}); };
  d.samples = [] { return unary_samples(DType::i32, {0, 1, -7}, {-1, -2, 6}); };
  return d;
}

}  // namespace cuvil::ops
