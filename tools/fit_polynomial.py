#!/usr/bin/env python3
"""Fits the polynomials and rational functions of core/kernel/math_*.cpp and prints them as C++ arrays.

Needs numpy and mpmath. Every fit is a minimax fit of the final function's relative error: weighted least squares whose
weights are raised where the error is large (C. L. Lawson, "Contributions to the theory of linear least maximum
approximation", 1961); rational functions by repeated linearisation (C. K. Sanathanan, J. Koerner, 1963). Coefficients are
rounded to the target type one after the other, lowest degree first, refitting the rest each time.

    python3 tools/fit_polynomial.py            all fits
    python3 tools/fit_polynomial.py erf tanh   some
"""

import sys

import mpmath as mp
import numpy as np

mp.mp.dps = 40
POINTS = 800


def nodes(lo, hi):
    """Chebyshev nodes: dense where minimax errors peak; never an end point, where ratios may be 0/0."""
    k = np.arange(POINTS)
    return lo + (hi - lo) * (0.5 - 0.5 * np.cos(np.pi * (k + 0.5) / POINTS))


def lawson(columns, target, weight, rounds=150):
    """Coefficients c that minimise max |weight * (columns @ c - target)|."""
    w = np.ones(len(target)) / len(target)
    best, best_error = None, np.inf
    scale = np.abs(columns * weight[:, None]).max(axis=0)
    scaled = columns / scale
    for _ in range(rounds):
        s = weight * np.sqrt(w)
        c, *_ = np.linalg.lstsq(scaled * s[:, None], target * s, rcond=None)
        e = np.abs(weight * (scaled @ c - target))
        if e.max() < best_error:
            best, best_error = c / scale, e.max()
        w = w * (e / e.max() + 1e-12) ** 1.0
        w /= w.sum()
    return best, best_error


def rounded_fit(columns, target, weight, dtype):
    """As lawson(), with coefficients representable in dtype."""
    fixed = []
    n = columns.shape[1]
    for k in range(n):
        rest = target - (columns[:, :k] @ np.array(fixed) if k else 0)
        c, _ = lawson(columns[:, k:], rest, weight)
        fixed.append(float(dtype(c[0])))
    error = np.abs(weight * (columns @ np.array(fixed) - target)).max()
    return fixed, error


def show(name, coefficients, error, dtype):
    digits = 9 if dtype is np.float32 else 17
    suffix = "f" if dtype is np.float32 else ""
    text = ", ".join(f"{c:.{digits}g}" + suffix for c in coefficients)
    print(f"{name}: {{{text}}}  // relative error {error:.2e} = {error / 2.0**-24:.3f} * 2^-24")


def polynomial(name, exact, lo, hi, degree, correction, result, dtype=np.float32):
    """result(x) = known(x) + correction(x) * p(t): p approximates exact(x); the error is weighted as the result's."""
    x = nodes(lo, hi)
    target = np.array([float(exact(mp.mpf(v))) for v in x])
    weight = np.array([float(abs(correction(mp.mpf(v)) / result(mp.mpf(v)))) for v in x])
    t = x if POLY_IN_X[name] else x * x
    columns = np.stack([t**k for k in range(degree + 1)], axis=1)
    c, error = rounded_fit(columns, target, weight, dtype)
    show(name, c, error, dtype)


def rational(name, f, hi, p_degree, q_degree, slope=1.0, dtype=np.float32):
    """f(x) = x * P(x^2) / Q(x^2) on (0, hi]. Q's constant term is 1, or the k/1024 that lets P's, slope times that, round
    with the least error."""
    scale = min((k / 1024 for k in range(1024, 1300)), key=lambda s: abs(float(dtype(s * slope)) / (s * slope) - 1))
    x = nodes(0, hi)
    u = x * x
    g = np.array([float(f(mp.mpf(v)) / mp.mpf(v)) for v in x])
    p_columns = np.stack([u**k for k in range(p_degree + 1)], axis=1)
    q_columns = np.stack([u**k for k in range(1, q_degree + 1)], axis=1)
    q_values = np.ones_like(x)
    q = None
    for _ in range(30):
        # (P - g*Q) / (g * Q_previous) is the relative error once Q has settled.
        columns = np.concatenate([p_columns, -g[:, None] * q_columns], axis=1)
        c, _ = lawson(columns, g, 1 / (g * q_values), rounds=60)
        q = c[p_degree + 1 :]
        q_values = 1 + q_columns @ q
    # Round the denominator first, then refit the numerator to what it has become.
    q = [float(dtype(scale * v)) for v in q]
    q_values = scale + q_columns @ np.array(q)
    p, error = rounded_fit(p_columns, g * q_values, 1 / (g * q_values), dtype)
    show(name + "_p", p, error, dtype)
    show(name + "_q", [scale] + q, error, dtype)


LN2 = float(mp.log(2))
SQRT2 = float(mp.sqrt(2))
POLY_IN_X = {
    "exp_wide": True,
    "exp": True,
    "exp2": True,
    "expm1": True,
    "log": True,
    "sin": False,
    "cos": False,
    "atan": False,
    "asin": False,
    "sinh": False,
    "log64": False,
}

FITS = {
    # exp(r) = 1 + r * p(r)
    "exp_wide": lambda: polynomial(
        "exp_wide", lambda r: mp.expm1(r) / r, -LN2 * 1.001, LN2 * 1.001, 6, lambda r: r, mp.exp
    ),
    "exp": lambda: polynomial(
        "exp", lambda r: mp.expm1(r) / r, -LN2 / 2 * 1.001, LN2 / 2 * 1.001, 5, lambda r: r, mp.exp
    ),
    # 2^r = 1 + r * p(r)
    "exp2": lambda: polynomial(
        "exp2", lambda r: (mp.power(2, r) - 1) / r, -0.5005, 0.5005, 5, lambda r: r, lambda r: mp.power(2, r)
    ),
    # log(1 + f) = f - f^2/2 + f^3 * p(f)
    "log": lambda: polynomial(
        "log", lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, 1 / SQRT2 - 1, SQRT2 - 1, 7, lambda f: f**3, mp.log1p
    ),
    # sin(r) = r + r^3 * p(r^2);  cos(r) = 1 - r^2/2 + r^4 * p(r^2)
    "sin": lambda: polynomial("sin", lambda r: (mp.sin(r) - r) / r**3, 0, np.pi / 4 * 1.001, 2, lambda r: r**3, mp.sin),
    "cos": lambda: polynomial(
        "cos", lambda r: (mp.cos(r) - 1 + r * r / 2) / r**4, 0, np.pi / 4 * 1.001, 2, lambda r: r**4, mp.cos
    ),
    # atan(x) = x + x^3 * p(x^2)
    "atan": lambda: polynomial("atan", lambda x: (mp.atan(x) - x) / x**3, 0, 1, 7, lambda x: x**3, mp.atan),
    # asin(x) = x + x^3 * p(x^2)
    "asin": lambda: polynomial("asin", lambda x: (mp.asin(x) - x) / x**3, 0, 0.5, 4, lambda x: x**3, mp.asin),
    # sinh(x) = x + x^3 * p(x^2)
    "sinh": lambda: polynomial("sinh", lambda x: (mp.sinh(x) - x) / x**3, 0, 1, 3, lambda x: x**3, mp.sinh),
    # log((1 + s) / (1 - s)) = 2 * s + s^3 * p(s^2), in double
    "log64": lambda: polynomial(
        "log64",
        lambda s: (mp.log((1 + s) / (1 - s)) - 2 * s) / s**3,
        0,
        3 - 2 * SQRT2 + 1e-6,
        3,
        lambda s: s**3,
        lambda s: 2 * s,
        np.float64,
    ),
    "tanh": lambda: rational("tanh", mp.tanh, 9.0, 4, 4),
    "erf": lambda: rational("erf", mp.erf, 3.85, 5, 5, 1.1283791670955126),
}

if __name__ == "__main__":
    for fit in sys.argv[1:] or FITS:
        FITS[fit]()
