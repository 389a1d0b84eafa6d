#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_shrink() {
  OpDef d = unary("Shrink", "y = x < -lambd ? x + bias : x > lambd ? x - bias : 0.", number_dtypes());
  d.attributes = {optional("lambd", AttrKind::real, "threshold", 0.5), optional("bias", AttrKind::real, "shift", 0.0)};
  d.expr = [](const ir::Node& node, std::span<const kernel::Expr> x) {
    using kernel::Expr;
    const kernel::Type t = x[0].type();
    // Thresholds need not be whole where x is: they are compared as reals.
    const kernel::Type real = is_float(t.dtype) ? t : kernel::Type{DType::f64, t.lanes};
    const Expr v = kernel::cast({real.dtype, 1}, x[0]);
    const Expr lambd = kernel::constant(real, node.attr<double>("lambd"));
    const Expr bias = kernel::constant(real, node.attr<double>("bias"));
    const Expr y = kernel::select(v < -lambd, v + bias, kernel::select(v > lambd, v - bias, kernel::constant(real, 0)));
    return kernel::cast({t.dtype, 1}, y);
  };
  d.samples = [] {
    return unary_samples({-2, -1.5, 0, 1, 3}, {-1.5, 0, 0, 0, 2.5}, 1e-5, {{"lambd", 1.5}, {"bias", 0.5}});
  };
  return d;
}

}  // namespace cuvil::ops
