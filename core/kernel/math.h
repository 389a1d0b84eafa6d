// Transcendental functions as Kernel IR arithmetic; private to expand_math.cpp and the math_*.cpp files.
//
// Every function takes and returns f32 (those named so f64) of any number of lanes and is branch-free. Error bounds are
// in docs/numerics.md; tests/kernel_transform/math_test.cpp measures them. Coefficients come from
// tools/fit_polynomial.py. The results share subexpressions: an Expr is a graph here, and expand_math(Kernel) gives the
// shared nodes names.
//
// Conventions: the operand x may be NaN, infinite or denormal. Clamps are written as selects that keep NaN (min and max
// would cost more: they have to treat NaN on either side), in the form that becomes one instruction on x86.
#pragma once

#include <initializer_list>
#include <utility>

#include "core/kernel/ir.h"

namespace cuvil::kernel {

/// Those that expand_math() expands.
inline bool is_transcendental(Op op) { return op >= Op::exp && op <= Op::pow; }

}  // namespace cuvil::kernel

namespace cuvil::kernel::math {

// ---- the functions
Expr exp(const Expr& x);
Expr sigmoid(const Expr& x);
Expr sinh(const Expr& x);
Expr cosh(const Expr& x);
Expr tanh(const Expr& x);
Expr erf(const Expr& x);
Expr log(const Expr& x);
Expr asinh(const Expr& x);
Expr acosh(const Expr& x);
Expr atanh(const Expr& x);
Expr pow(const Expr& x, const Expr& y);
Expr sin(const Expr& x);
Expr cos(const Expr& x);
Expr tan(const Expr& x);
Expr asin(const Expr& x);
Expr acos(const Expr& x);
Expr atan(const Expr& x);

// ---- in f64: x and the result are f64
Expr exp_f64(const Expr& x);
Expr log_f64(const Expr& x);
Expr tanh_f64(const Expr& x);
Expr sigmoid_f64(const Expr& x);
Expr sinh_f64(const Expr& x);
Expr cosh_f64(const Expr& x);

// ---- shared parts
/// A constant of x's type and lanes.
inline Expr like(const Expr& x, double value) { return constant(x.type(), value); }

/// c[0] + x * (c[1] + x * (...)), by Horner's rule: fewest operations, and independent vectors hide its latency.
inline Expr horner(const Expr& x, std::initializer_list<double> c) {
  const double* i = c.end() - 1;
  Expr r = like(x, *i);
  while (i != c.begin()) r = kernel::fma(r, x, like(x, *--i));
  return r;
}

inline Type i32_of(const Expr& x) { return Type{DType::i32, x.type().lanes}; }
inline Type i64_of(const Expr& x) { return Type{DType::i64, x.type().lanes}; }
inline Type f32_of(const Expr& x) { return Type{DType::f32, x.type().lanes}; }
inline Type f64_of(const Expr& x) { return Type{DType::f64, x.type().lanes}; }
inline Expr bits(const Expr& x) { return bitcast(i32_of(x), x); }
inline Expr to_f64(const Expr& x) { return kernel::cast(f64_of(x), x); }
inline Expr to_f32(const Expr& x) { return kernel::cast(f32_of(x), x); }
inline Expr absolute(const Expr& x) { return make(Op::abs, {x}); }
inline Expr shift_left(const Expr& x, int n) { return make(Op::shl, {x, like(x, n)}); }
inline Expr shift_right(const Expr& x, int n) { return make(Op::shr, {x, like(x, n)}); }

/// lo if x < lo, hi if x > hi, else x (NaN stays).
inline Expr clamp_keeping_nan(const Expr& x, double lo, double hi) {
  const Expr low = like(x, lo), high = like(x, hi);
  const Expr y = select(x < low, low, x);
  return select(high < y, high, y);
}

/// magnitude (>= 0) with the sign of x.
Expr with_sign_of(const Expr& magnitude, const Expr& x);

/// Adding 1.5 * 2^23 to an f32 of magnitude below 2^22 leaves it rounded to an integer in the low bits.
inline constexpr double kRound32 = 12582912.0;
/// 1.5 * 2^52: the same for f64 below 2^51.
inline constexpr double kRound64 = 6755399441055744.0;

/// 2^n for the integer in the low bits of `t` (an f32 that had kRound32 added), -127 <= n <= 127; -127 gives 0.
Expr power_of_two(const Expr& t);

/// log of a positive, finite, normal f64, with relative error below 2^-37.
Expr log64(const Expr& y);

}  // namespace cuvil::kernel::math
