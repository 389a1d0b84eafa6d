// exp, log and what is built on them, in f64. Series are Taylor's: their remainders on the reduced operands are below
// 2^-57 of the result, and few models compute in f64.
#include <limits>

#include "core/kernel/math.h"

namespace cuvil::kernel::math {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLog2e = 1.4426950408889634074;
// ln 2 in two doubles, the first of 33 significant bits: its product with an integer below 2^20 is exact.
constexpr double kLn2Hi = 0x1.62e42feep-1;
constexpr double kLn2Lo = 0x1.a39ef35793c76p-33;

/// 2^n for the integer in the low bits of `t` (an f64 that had kRound64 added), -1022 <= n <= 1023.
Expr power_of_two_f64(const Expr& t) {
  const Expr b = bitcast(i64_of(t), t);
  return bitcast(f64_of(t), make(Op::shl, {b, like(b, 52)}) + const_int(Type{DType::i64, 1}, int64_t{1023} << 52));
}

Expr with_sign_f64(const Expr& magnitude, const Expr& x) {
  const Expr b = bitcast(i64_of(x), x);
  const Expr sign = b & const_int(Type{DType::i64, 1}, std::numeric_limits<int64_t>::min());
  return bitcast(f64_of(x), bitcast(i64_of(magnitude), magnitude) | sign);
}

/// c[first] + r / (first + 1) * (...): the series of exp from its term r^first / first! on, divided by r^first.
Expr exp_series(const Expr& r, int first, int last) {
  double factorial = 1;
  for (int k = 2; k <= last; ++k) factorial *= k;
  Expr sum = like(r, 1 / factorial);
  for (int k = last - 1; k >= first; --k) {
    factorial /= k + 1;
    sum = kernel::fma(sum, r, like(r, 1 / factorial));
  }
  return sum;
}

/// x - n * scale * ln 2 for the integer n that `t` holds, in two exact steps.
Expr reduced(const Expr& x, const Expr& n, double scale) {
  const Expr r = kernel::fma(n, like(x, -scale * kLn2Hi), x);
  return kernel::fma(n, like(x, -scale * kLn2Lo), r);
}

/// scale * exp(x) = scale * (2^n)^2 * exp(r), x = 2n ln 2 + r, |r| <= ln 2: as in f32.
Expr scaled_exp_f64(const Expr& x, double scale) {
  const Expr c = clamp_keeping_nan(x, -746, 711);
  const Expr t = kernel::fma(c, like(x, kLog2e / 2), like(x, kRound64));
  const Expr r = reduced(c, t - like(x, kRound64), 2);
  Expr p = kernel::fma(r, exp_series(r, 1, 18), like(x, 1));
  if (scale != 1) p = p * like(x, scale);
  const Expr s = power_of_two_f64(t);
  return p * s * s;
}

/// exp(x) - 1 for 0 <= x <= 45: 2^n (exp(r) - 1) + (2^n - 1), whose last part is exact.
Expr expm1_f64(const Expr& x) {
  const Expr t = kernel::fma(x, like(x, kLog2e), like(x, kRound64));
  const Expr r = reduced(x, t - like(x, kRound64), 1);
  const Expr p = kernel::fma(r * r, exp_series(r, 2, 14), r);
  const Expr s = power_of_two_f64(t);
  return kernel::fma(s, p, s - like(x, 1));
}

}  // namespace

Expr exp_f64(const Expr& x) { return scaled_exp_f64(x, 1); }

Expr sigmoid_f64(const Expr& x) { return like(x, 1) / (like(x, 1) + exp_f64(-x)); }

// With t = exp(2|x|) - 1: tanh |x| = t / (t + 2), 1 from 20 on.
Expr tanh_f64(const Expr& x) {
  const Expr t = expm1_f64(clamp_keeping_nan(absolute(x), 0, 20) * like(x, 2));
  return with_sign_f64(t / (t + like(x, 2)), x);
}

// Below 1 with t = exp(|x|) - 1: (t + t / (t + 1)) / 2; above with h = exp(|x|) / 2: h - 1 / (4h).
Expr sinh_f64(const Expr& x) {
  const Expr a = absolute(x), one = like(x, 1);
  const Expr t = expm1_f64(clamp_keeping_nan(a, 0, 1));
  const Expr h = scaled_exp_f64(a, 0.5);
  const Expr small = (t + t / (t + one)) * like(x, 0.5), large = h - like(x, 0.25) / h;
  return with_sign_f64(select(a < one, small, large), x);
}

Expr cosh_f64(const Expr& x) {
  const Expr h = scaled_exp_f64(absolute(x), 0.5);
  return h + like(x, 0.25) / h;
}

// x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2). With s = f / (2 + f), log(1 + f) = 2 atanh s = f - h + s (h + R)
// for h = f^2 / 2 and R = 2/3 s^2 + 2/5 s^4 + ...: f is exact, and what is added to it is small.
Expr log_f64(const Expr& x) {
  const Type i64{DType::i64, 1};
  const Expr tiny = x < like(x, std::numeric_limits<double>::min());
  const Expr b = bitcast(i64_of(x), select(tiny, x * like(x, 0x1p54), x));
  const Expr biased = b - const_int(i64, 0x3fe6a09e667f3bcd);  // sqrt(1/2)
  const Expr k = make(Op::shr, {biased, like(b, 52)});
  const Expr f = bitcast(f64_of(x), b - make(Op::shl, {k, like(b, 52)})) - like(x, 1);
  Expr e = bitcast(f64_of(x), k + const_int(i64, 0x4338000000000000)) - like(x, kRound64);
  e = e + select(tiny, like(x, -54), like(x, 0));
  const Expr s = f / (f + like(x, 2)), z = s * s, h = f * f * like(x, 0.5);
  Expr sum = like(x, 2.0 / 25);
  for (int i = 23; i >= 3; i -= 2) sum = kernel::fma(sum, z, like(x, 2.0 / i));
  const Expr small = kernel::fma(s, kernel::fma(z, sum, h), e * like(x, kLn2Lo));
  const Expr y = kernel::fma(e, like(x, kLn2Hi), f - (h - small));
  const Expr zero = like(x, 0), nan = like(x, std::numeric_limits<double>::quiet_NaN());
  return select(zero < x, select(x < like(x, kInf), y, x), select(x == zero, like(x, -kInf), nan));
}

}  // namespace cuvil::kernel::math
