#include "core/ops/math.h"

#include <limits>

namespace cuvil::ops::math {

using kernel::constant;
using kernel::Expr;
using kernel::make;
using kernel::Op;
using kernel::select;

Expr softplus(const Expr& x) {
  const kernel::Type t = x.type();
  const Expr zero = constant(t, 0), one = constant(t, 1);
  // max(x, 0) + log1p(u), u = e^-|x|; log1p by Kahan: u * log(w) / (w - 1) with w = 1 + u cancels w's rounding error.
  const Expr u = make(Op::exp, {-make(Op::abs, {x})});
  const Expr w = one + u;
  const Expr log1p = select(w == one, u, make(Op::log, {w}) * u / (w - one));
  return select(x < zero, zero, x) + log1p;
}

Expr expm1(const Expr& x) { return make(Op::exp, {x}) - constant(x.type(), 1); }

Expr clamp(const Expr& x, const Expr& low, const Expr& high) {
  const Expr above = select(x < low, low, x);
  return select(above > high, high, above);
}

Expr remainder(const Expr& a, const Expr& b, bool truncated) {
  const kernel::Type t = a.type();
  if (!is_float(t.dtype)) {
    if (truncated) return a - a / b * b;
    // With a divisor of 0 both quotients are 0: what is left would be a.
    return select(b == constant(t, 0), constant(t, 0), a % b);
  }
  const kernel::Type wide{DType::f64, t.lanes};
  const Expr x = cast({DType::f64, 1}, a), y = cast({DType::f64, 1}, b), zero = constant(wide, 0);
  const Expr infinite = make(Op::abs, {y}) == constant(wide, std::numeric_limits<double>::infinity());
  const Expr finite_x = make(Op::abs, {x}) < constant(wide, std::numeric_limits<double>::infinity());
  Expr r = x - make(Op::trunc, {x / y}) * y;
  r = select(infinite & finite_x, x, r);
  if (!truncated) r = select((r != zero) & ((r < zero) != (y < zero)), r + y, r);
  return cast({t.dtype, 1}, r);
}

}  // namespace cuvil::ops::math
