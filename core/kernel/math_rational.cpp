// tanh and erf: odd functions that reach 1; x * P(x^2) / Q(x^2) up to there. x is clamped where the quotient, as it
// rounds, first is 1: no result exceeds 1, and the rest of the axis gives 1.
#include "core/kernel/math.h"

namespace cuvil::kernel::math {
namespace {

/// c0 + u * (c1 + c2*u + u^2 * (c3 + ...)): a chain of roundings between those of Horner's rule, which is better for
/// small u, and of Estrin's scheme, better for large u. Found by trying.
Expr degree_five(const Expr& u, const Expr& u2, std::initializer_list<double> coefficients) {
  const double* c = coefficients.begin();
  const Expr low = kernel::fma(u, like(u, c[2]), like(u, c[1]));
  const Expr rest = kernel::fma(u2, horner(u, {c[3], c[4], c[5]}), low);
  return kernel::fma(u, rest, like(u, c[0]));
}

}  // namespace

Expr tanh(const Expr& x) {
  const Expr c = clamp_keeping_nan(x, -8.01750374, 8.01750374);
  const Expr u = c * c;
  const Expr p = horner(u, {1.0, 0.133810341, 0.00349560194, 2.06092445e-05, 1.33550815e-08});
  const Expr q = horner(u, {1.0, 0.467143506, 0.0258770306, 0.000328565453, 7.77666116e-07});
  return c * p / q;
}

Expr erf(const Expr& x) {
  const Expr c = clamp_keeping_nan(x, -3.64888692, 3.64888692);
  const Expr u = c * c, u2 = u * u;
  const Expr p =
      degree_five(u, u2, {1.25840724, 0.209550291, 0.0585272573, 0.00409729779, 0.000318595266, 2.35119455e-06});
  const Expr q = degree_five(u, u2, {1.11523438, 0.557453454, 0.12616545, 0.0164886508, 0.00127750461, 4.31951194e-05});
  return c * p / q;
}

}  // namespace cuvil::kernel::math
