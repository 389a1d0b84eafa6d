// exp, sigmoid, sinh, cosh: everything that is built on 2^n * exp(r).
#include <limits>

#include "core/kernel/math.h"

namespace cuvil::kernel::math {
namespace {

constexpr double kLog2e = 1.4426950408889634074;
// ln 2 in two floats; the first has 12 significant bits, so that n * kLn2Hi is exact in what follows.
constexpr double kLn2Hi = 0.693359375;
constexpr double kLn2Lo = -2.12194440054690583e-4;

/// scale * exp(x) for a power of two `scale`, over the whole range of f32: exp(x) = (2^n)^2 * exp(r) with
/// x = 2n ln 2 + r. Twice the usual range of r costs two more terms of the polynomial and saves building two different
/// powers of two, which denormal results would otherwise need.
Expr scaled_exp(const Expr& x, double scale) {
  const Expr c = clamp_keeping_nan(x, -104.5, 89.5);
  const Expr t = kernel::fma(c, like(x, kLog2e / 2), like(x, kRound32));
  const Expr n = t - like(x, kRound32);
  Expr r = kernel::fma(n, like(x, -2 * kLn2Hi), c);
  r = kernel::fma(n, like(x, -2 * kLn2Lo), r);
  // exp(r) = 1 + r * q(r) for |r| <= ln 2
  const Expr q = horner(r, {1.0, 0.500000358, 0.166666165, 0.0416611955, 0.00833596382, 0.00141055568, 0.000196310255});
  Expr p = kernel::fma(r, q, like(x, 1));
  if (scale != 1) p = p * like(x, scale);
  const Expr s = power_of_two(t);
  return p * s * s;
}

}  // namespace

Expr power_of_two(const Expr& t) { return bitcast(f32_of(t), shift_left(bits(t), 23) + like(bits(t), 127 << 23)); }

Expr with_sign_of(const Expr& magnitude, const Expr& x) {
  const Expr sign = bits(x) & like(bits(x), static_cast<double>(std::numeric_limits<int32_t>::min()));
  return bitcast(f32_of(x), bits(magnitude) | sign);
}

Expr exp(const Expr& x) { return scaled_exp(x, 1); }

// With x = n ln 2 + r: 1 / (1 + exp(-x)) = 2^n / (2^n + exp(-r)). Nothing overflows, and 2^-127 being 0 makes the
// result 0 below -87.7, minus infinity included.
Expr sigmoid(const Expr& x) {
  const Expr c = clamp_keeping_nan(x, -88, 88);
  const Expr t = kernel::fma(c, like(x, kLog2e), like(x, kRound32));
  const Expr n = t - like(x, kRound32);
  Expr r = kernel::fma(n, like(x, -kLn2Hi), c);
  r = kernel::fma(n, like(x, -kLn2Lo), r);
  // exp(-r) = 1 + r * q(r) for |r| <= ln 2 / 2
  const Expr q = horner(r, {-1.0, 0.49999994, -0.166665211, 0.0416682735, -0.00836868584, 0.00138201355});
  const Expr s = power_of_two(t);
  return s / (s + kernel::fma(r, q, like(x, 1)));
}

// With h = exp(|x|) / 2: sinh = h - 1/(4h), from 1 on; below, x + x^3 * p(x^2).
Expr sinh(const Expr& x) {
  const Expr a = absolute(x), u = x * x;
  const Expr h = scaled_exp(a, 0.5);
  const Expr large = h - like(x, 0.25) / h;
  const Expr p = horner(u, {0.166666672, 0.00833331048, 0.000198428956, 2.78221319e-06});
  const Expr small = kernel::fma(a * u, p, a);
  return with_sign_of(select(a < like(x, 1), small, large), x);
}

Expr cosh(const Expr& x) {
  const Expr h = scaled_exp(absolute(x), 0.5);
  return h + like(x, 0.25) / h;
}

}  // namespace cuvil::kernel::math
