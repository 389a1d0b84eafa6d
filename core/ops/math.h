// Expressions that several operators share.
#pragma once

#include "core/kernel/ir.h"

namespace cuvil::ops::math {

/// ln(1 + e^x), without overflow and without losing small results.
kernel::Expr softplus(const kernel::Expr& x);
/// e^x - 1 as it stands: absolute error of exp, enough where the result is added to something of size 1.
kernel::Expr expm1(const kernel::Expr& x);
/// x < low ? low : x > high ? high : x; NaN stays NaN. high wins where low > high.
kernel::Expr clamp(const kernel::Expr& x, const kernel::Expr& low, const kernel::Expr& high);
/// a modulo b: with the sign of a (`truncated`, C's fmod), else of b (Python's %). Integers exactly; a modulo 0 is 0.
/// f32 through f64: exact while |a / b| < 2^29.
kernel::Expr remainder(const kernel::Expr& a, const kernel::Expr& b, bool truncated);

}  // namespace cuvil::ops::math
