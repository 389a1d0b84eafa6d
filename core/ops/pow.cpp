#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_pow() {
  OpDef d =
      binary("Pow",
             "y = a^b, of the element type of a. The exponent may be of any number type; integer bases are refused: "
             "cast them.",
             float_dtypes());
  d.infer = [](const InferContext& c) {
    if (c.in(1).dtype == DType::boolean || c.in(1).dtype == DType::f64) c.fail("exponents are no bool and no f64");
    return std::vector<ir::Type>{{c.in(0).dtype, broadcast(c, c.in(0).shape, c.in(1).shape), {}}};
  };
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) {
    const kernel::Expr exponent = kernel::cast({x[0].type().dtype, 1}, x[1]);
    // Squares and roots of layer norms and variances need no logarithm.
    if (exponent->op == kernel::Op::const_float || exponent->op == kernel::Op::broadcast) {
      const kernel::Expr scalar = exponent->op == kernel::Op::broadcast ? exponent->args[0] : exponent;
      if (scalar->op == kernel::Op::const_float) {
        if (scalar->float_value == 1) return x[0];
        if (scalar->float_value == 2) return x[0] * x[0];
        if (scalar->float_value == 3) return x[0] * x[0] * x[0];
        if (scalar->float_value == -1) return kernel::constant(x[0].type(), 1) / x[0];
      }
    }
    return kernel::make(kernel::Op::pow, {x[0], exponent});
  };
  d.samples = [] {
    return std::vector<Sample>{
        {"by_hand", {f32({5}), f32({5})}, {}, {{2, 9, -2, 0, 4}, {3, 0.5, 3, 0, -0.5}}, {8, 3, -8, 1, 0.5}},
        {"random", {f32({3, 17}), f32({17})}, {}, {}, {}, 1e-5, {0.1, 2}},
        {"image", {f32({2, 20, 5, 7}), f32({20, 1, 1})}, {}, {}, {}, 1e-5, {0.1, 2}},
        {"mixed", {f32({4}), of(DType::i64, {4})}, {}, {{2, 3, -2, 1.5}, {3, 2, 2, 0}}, {8, 9, 4, 1}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
