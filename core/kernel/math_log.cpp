// log in f32, and what is built on a logarithm in f64: asinh, acosh, atanh. The latter are rare in models, so they buy
// short code and accuracy with vectors of half as many lanes.
#include <limits>

#include "core/kernel/math.h"

namespace cuvil::kernel::math {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kLn2 = 0.69314718055994530942;

}  // namespace

// x = 2^k * (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2); log x = k ln 2 + log(1 + f).
Expr log(const Expr& x) {
  const Expr tiny = x < like(x, std::numeric_limits<float>::min());
  const Expr b = bits(select(tiny, x * like(x, 8388608.0), x));
  const Expr k = shift_right(b - like(b, 0x3f3504f3), 23);
  const Expr f = bitcast(f32_of(x), b - shift_left(k, 23)) - like(x, 1);
  const Expr e = kernel::cast(f32_of(x), k) + select(tiny, like(x, -23), like(x, 0));
  // log(1 + f) = f - f^2/2 + f^3 * p(f); ln 2 in two parts, the first times e exact
  const Expr p = horner(
      f, {0.333333313, -0.250008196, 0.200012416, -0.166234091, 0.1420158, -0.131596103, 0.127622157, -0.0763643533});
  const Expr z = f * f;
  Expr y = kernel::fma(f * z, p, e * like(x, -2.12194440054690583e-4));
  y = kernel::fma(z, like(x, -0.5), y);
  y = kernel::fma(e, like(x, 0.693359375), f + y);
  const Expr zero = like(x, 0);
  // +inf stays; 0 gives -inf; negative numbers and NaN give NaN.
  return select(zero < x, select(x < like(x, kInf), y, x), select(x == zero, like(x, -kInf), like(x, kNan)));
}

// y = 2^k * m as above; log m = 2s + s^3 * p(s^2) with s = (m - 1) / (m + 1), |s| <= 0.1716.
Expr log64(const Expr& y) {
  const Expr b = bitcast(i64_of(y), y);
  const Expr biased = b - const_int(Type{DType::i64, 1}, 0x3fe6a09e667f3bcd);  // sqrt(1/2)
  const Expr k = make(Op::shr, {biased, like(b, 52)});
  const Expr m = bitcast(f64_of(y), b - make(Op::shl, {k, like(b, 52)}));
  // k to f64 without an integer conversion, which AVX2 lacks for i64: kRound64 has room for k in its low bits.
  const Expr e = bitcast(f64_of(y), k + const_int(Type{DType::i64, 1}, 0x4338000000000000)) - like(y, kRound64);
  const Expr s = (m - like(y, 1)) / (m + like(y, 1));
  const Expr u = s * s;
  const Expr p = horner(u, {0.66666665645412382, 0.40000335201849924, 0.28537307824786301, 0.23582165279173092});
  const Expr log_m = kernel::fma(s * u, p, s + s);
  return kernel::fma(e, like(y, kLn2), log_m);
}

namespace {

/// The series of an odd function where |x| is tiny and the logarithm would cancel: x + c * x^3 below 2^-10.
Expr with_tiny(const Expr& x, const Expr& general, double c) {
  const Expr tiny = absolute(x) < like(x, 0x1p-10);
  return select(tiny, kernel::fma(x * x * x, like(x, c), x), general);
}

}  // namespace

// asinh x = sign(x) log(|x| + sqrt(x^2 + 1)); x^2 of an f32 neither overflows nor rounds in f64.
Expr asinh(const Expr& x) {
  const Expr a = to_f64(absolute(x));
  const Expr general = to_f32(log64(a + make(Op::sqrt, {kernel::fma(a, a, like(a, 1))})));
  const Expr result = with_tiny(absolute(x), general, -1.0 / 6);
  return with_sign_of(select(absolute(x) < like(x, kInf), result, absolute(x)), x);
}

// acosh x = log(x + sqrt((x - 1) (x + 1))), NaN below 1.
Expr acosh(const Expr& x) {
  const Expr a = to_f64(x);
  const Expr root = make(Op::sqrt, {(a - like(a, 1)) * (a + like(a, 1))});
  const Expr result = select(x < like(x, kInf), to_f32(log64(a + root)), x);
  return select(x < like(x, 1), like(x, kNan), result);
}

// atanh x = log((1 + x) / (1 - x)) / 2; +-1 give infinities, beyond is NaN.
Expr atanh(const Expr& x) {
  const Expr a = to_f64(absolute(x)), one = like(a, 1);
  const Expr general = to_f32(log64((one + a) / (one - a)) * like(a, 0.5));
  const Expr inside = with_tiny(absolute(x), general, 1.0 / 3);
  const Expr result = select(absolute(x) == like(x, 1), like(x, kInf), inside);
  return with_sign_of(select(absolute(x) <= like(x, 1), result, like(x, kNan)), x);
}

}  // namespace cuvil::kernel::math
