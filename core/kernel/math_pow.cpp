// pow, with the special cases of C99 annex F.9.4.4.
#include <limits>

#include "core/kernel/math.h"

namespace cuvil::kernel::math {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLog2e = 1.4426950408889634074;

/// The value of every lane of a constant vector or scalar.
bool is_constant(const Expr& e, double* value) {
  if (e->op == Op::broadcast) return is_constant(e->args[0], value);
  if (e->op != Op::const_float) return false;
  *value = e->float_value;
  return true;
}

}  // namespace

// |x|^y = 2^t, t = y log2|x| in f64: its error there, 150 * 2^-37, is small beside an ulp of the f32 result.
Expr pow(const Expr& x, const Expr& y) {
  double c = 0;
  if (is_constant(y, &c)) {
    if (c == 1) return x;
    if (c == 2) return x * x;
    if (c == 3) return x * x * x;
    if (c == -1) return like(x, 1) / x;
    // pow(-0, 1/2) is +0 and pow(-inf, 1/2) is +inf, unlike sqrt.
    if (c == 0.5) return select(x == like(x, -kInf), like(x, kInf), make(Op::sqrt, {x + like(x, 0)}));
  }
  const Expr a = absolute(x), zero = like(x, 0), one = like(x, 1), inf = like(x, kInf);
  const Expr wide = to_f64(a);
  Expr l = log64(wide) * like(wide, kLog2e);
  l = select(a == zero, like(l, -kInf), select(a == inf, like(l, kInf), l));
  Expr t = select(a == one, like(l, 0), to_f64(y) * l);
  t = clamp_keeping_nan(t, -160, 160);
  const Expr rounded = t + like(t, kRound64);
  const Expr r = to_f32(t - (rounded - like(t, kRound64)));
  // 2^r = 1 + r * p(r) for |r| <= 1/2; then two powers of two, as n runs from -160 to 160
  const Expr p = horner(r, {0.693147182, 0.240226477, 0.0555035956, 0.00961850304, 0.00133909972, 0.00015327803});
  const Expr n = kernel::cast(i32_of(x), bitcast(i64_of(rounded), rounded));
  const Expr half = shift_right(n, 1);
  const auto power = [&](const Expr& k) { return bitcast(f32_of(x), shift_left(k, 23) + like(k, 127 << 23)); };
  const Expr magnitude = kernel::fma(r, p, one) * power(half) * power(n - half);

  // A negative base needs an integer exponent; an odd one keeps the sign.
  const Expr integer = make(Op::trunc, {y}) == y;
  const Expr y_half = y * like(y, 0.5);
  const Expr odd = integer & (make(Op::trunc, {y_half}) != y_half);
  const Expr negative = bits(x) < like(bits(x), 0);
  Expr result = select(odd & negative, -magnitude, magnitude);
  const Expr undefined = (x < zero) & (a < inf) & logical_not(integer);
  result = select(undefined, like(x, std::numeric_limits<double>::quiet_NaN()), result);
  // A NaN base beside a zero |x| or 1 test above has to come out as NaN; pow(1, y) and pow(x, 0) are 1 even for NaN.
  result = select((x != x) | (y != y), x + y, result);
  return select((x == one) | (y == zero), one, result);
}

}  // namespace cuvil::kernel::math
