#include <cmath>

#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_sign() {
  OpDef d = unary("Sign", "y = -1, 0 or 1; NaN stays NaN.", number_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) {
    const kernel::Type t = x[0].type();
    const kernel::Expr zero = kernel::constant(t, 0);
    const kernel::Expr positive = kernel::select(x[0] > zero, kernel::constant(t, 1), x[0]);
    return is_unsigned_int(t.dtype) ? positive : kernel::select(x[0] < zero, kernel::constant(t, -1), positive);
  };
  d.samples = [] {
    std::vector<Sample> all = unary_samples({-2.5, 0, 3, NAN}, {-1, 0, 1, NAN});
    append(all, unary_samples(DType::i32, {-5, 0, 7}, {-1, 0, 1}), "i32_");
    return all;
  };
  return d;
}

}  // namespace cuvil::ops
