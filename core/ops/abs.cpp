#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_abs() {
  OpDef d = unary("Abs", "y = |x|. The least integer stays itself.", number_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) {
    if (is_unsigned_int(x[0].type().dtype)) return x[0];
    return kernel::make(kernel::Op::abs, {x[0]});
  };
  d.samples = [] {
    std::vector<Sample> all = unary_samples({-2, -0.0, 0.5, 3}, {2, 0, 0.5, 3});
    append(all, unary_samples(DType::i32, {-2, 0, 7}, {2, 0, 7}), "i32_");
    return all;
  };
  return d;
}

}  // namespace cuvil::ops
