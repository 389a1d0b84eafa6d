// sin, cos, tan and their inverses.
#include <limits>

#include "core/kernel/math.h"

namespace cuvil::kernel::math {
namespace {

constexpr double kPiHalf = 1.57079632679489661923;      // in f64
constexpr double kPiHalfLow = 6.12323399573676588e-17;  // pi/2 minus that
constexpr double kPiHalf32 = 1.57079637050628662;       // in f32
constexpr double kPiHalf32Low = -4.37113900018624283e-8;

/// x = q * pi/2 + r with |r| <= pi/4.
struct Reduced {
  Expr r;  ///< f32
  Expr q;  ///< i32; its two low bits count
};

// For every finite f32. From 2^46 on, x = y * 2^(22k) with an integer y < 2^46, and 2^(22k) mod 2 pi = hi + lo is a
// constant; then y * (hi + lo) is reduced by pi/2 in f64, products kept exact by fma. The remainder of an f32 is never
// below about 2^-30, while the error stays below 2^-56.
Reduced reduce(const Expr& x) {
  struct Step {
    double from, scale, hi, lo;
  };
  static constexpr Step kSteps[] = {
      {0x1p46, 0x1p-22, 0x1.58e8ec12c0aa8p+0, 0x1.95c955afd3e7bp-54},
      {0x1p68, 0x1p-44, 0x1.9a6f58862bf99p-2, 0x1.7e60254ee49ebp-56},
      {0x1p90, 0x1p-66, 0x1.8c15033662d50p+2, -0x1.0db9c88f485cfp-54},
      {0x1p112, 0x1p-88, 0x1.800b0b8b309ddp+2, 0x1.492418c5562eep-53},
  };
  const Expr a = absolute(x), wide = to_f64(x);
  Expr scale = like(wide, 1), hi = like(wide, 1), lo = like(wide, 0);
  for (const Step& s : kSteps) {
    const Expr beyond = like(x, s.from) <= a;
    scale = select(beyond, like(wide, s.scale), scale);
    hi = select(beyond, like(wide, s.hi), hi);
    lo = select(beyond, like(wide, s.lo), lo);
  }
  const Expr y = wide * scale;
  const Expr product = y * hi;
  const Expr rest = kernel::fma(y, lo, kernel::fma(y, hi, -product));
  const Expr t = kernel::fma(product, like(wide, 1 / kPiHalf), like(wide, kRound64));
  const Expr n = t - like(wide, kRound64);
  const Expr r = kernel::fma(n, like(wide, -kPiHalf), product) + kernel::fma(n, like(wide, -kPiHalfLow), rest);
  return {to_f32(r), kernel::cast(i32_of(x), bitcast(i64_of(t), t))};
}

Expr sin_poly(const Expr& r) {
  const Expr u = r * r;
  return kernel::fma(r * u, horner(u, {-0.166666552, 0.00833218731, -0.000195179076}), r);
}

Expr cos_poly(const Expr& r) {
  const Expr u = r * r;
  const Expr p = horner(u, {0.0416666456, -0.00138873095, 2.44323292e-05});
  return kernel::fma(u * u, p, kernel::fma(u, like(r, -0.5), like(r, 1)));
}

Expr is_odd(const Expr& q) { return (q & like(q, 1)) != like(q, 0); }

/// -x where bit 1 of q is set.
Expr negate_by(const Expr& q, const Expr& x) {
  return bitcast(f32_of(x), make(Op::bit_xor, {bits(x), shift_left(q & like(q, 2), 30)}));
}

/// asin(s) for s = sqrt(z), 0 <= s <= 1/2: s + s * z * p(z).
Expr asin_poly(const Expr& s, const Expr& z) {
  return kernel::fma(s * z, horner(z, {0.166667521, 0.0749530941, 0.0454691499, 0.0241847783, 0.0421583056}), s);
}

}  // namespace

Expr sin(const Expr& x) {
  const Reduced d = reduce(x);
  const Expr y = negate_by(d.q, select(is_odd(d.q), cos_poly(d.r), sin_poly(d.r)));
  return select(x == like(x, 0), x, y);  // keeps -0
}

Expr cos(const Expr& x) {
  const Reduced d = reduce(x);
  return negate_by(d.q + like(d.q, 1), select(is_odd(d.q), sin_poly(d.r), cos_poly(d.r)));
}

// tan = sin/cos in even quadrants, -cos/sin in odd ones.
Expr tan(const Expr& x) {
  const Reduced d = reduce(x);
  const Expr s = sin_poly(d.r), c = cos_poly(d.r), odd = is_odd(d.q);
  const Expr y = select(odd, -c, s) / select(odd, s, c);
  return select(x == like(x, 0), x, y);
}

// asin x = pi/2 - 2 asin(sqrt((1 - x) / 2)) above 1/2. Beyond 1 the root is NaN.
Expr asin(const Expr& x) {
  const Expr a = absolute(x), big = like(x, 0.5) < a;
  const Expr z = select(big, (like(x, 1) - a) * like(x, 0.5), a * a);
  const Expr s = select(big, make(Op::sqrt, {z}), a);
  const Expr p = asin_poly(s, z);
  const Expr folded = like(x, kPiHalf32) - (p + p - like(x, kPiHalf32Low));
  return with_sign_of(select(big, folded, p), x);
}

// acos x = 2 asin(sqrt((1 - x) / 2)) above 1/2, pi minus that of -x below -1/2, pi/2 - asin x between.
Expr acos(const Expr& x) {
  const Expr a = absolute(x), big = like(x, 0.5) < a;
  const Expr z = select(big, (like(x, 1) - a) * like(x, 0.5), a * a);
  const Expr s = select(big, make(Op::sqrt, {z}), a);
  const Expr p = asin_poly(s, z);
  const Expr positive = like(x, 0) < x;
  const Expr twice = p + p;
  const Expr far = select(positive, twice, like(x, 2 * kPiHalf32) - (twice - like(x, 2 * kPiHalf32Low)));
  const Expr signed_p = select(positive, p, -p);
  const Expr near = like(x, kPiHalf32) - (signed_p - like(x, kPiHalf32Low));
  return select(big, far, near);
}

// atan x = pi/2 - atan(1/x) above 1; below, x + x^3 * p(x^2).
Expr atan(const Expr& x) {
  const Expr a = absolute(x), big = like(x, 1) < a;
  const Expr t = select(big, like(x, 1) / a, a);
  const Expr u = t * t;
  const Expr p = horner(u, {-0.333331525, 0.199937671, -0.142110035, 0.106657855, -0.0755172372, 0.0432058536,
                            -0.0163641237, 0.00291971723});
  const Expr y = kernel::fma(t * u, p, t);
  return with_sign_of(select(big, like(x, kPiHalf32) - (y - like(x, kPiHalf32Low)), y), x);
}

}  // namespace cuvil::kernel::math
