// floordiv, mod, min and max of Dims: the rules that bring them to canonical form, each with its equation.
// `d` is a positive constant, x and y are Dims, k an integer.
#include <algorithm>
#include <numeric>

#include "core/base/dim.h"
#include "core/base/dim_impl.h"
#include "core/base/error.h"

namespace cuvil {
namespace {

using Kind = Dim::Kind;

DimRange range(const Dim& d) { return DimImpl::range(d); }

Dim make_floordiv(const Dim& x, const Dim& y) {
  const DimRange rx = range(x), ry = range(y);
  const auto divide = [](int64_t v, int64_t by) {
    return v == DimRange::kMin || v == DimRange::kMax ? v : floor_divide(v, by);
  };
  DimRange r;
  const int64_t dmin = std::max<int64_t>(ry.lo, 1), dmax = std::max<int64_t>(ry.hi, 1);
  r.lo = rx.lo >= 0 ? (dmax == DimRange::kMax ? 0 : divide(rx.lo, dmax)) : divide(rx.lo, dmin);
  r.hi = rx.hi >= 0 ? divide(rx.hi, dmin) : (dmax == DimRange::kMax ? -1 : divide(rx.hi, dmax));
  return DimImpl::from_atom({Kind::floordiv, {}, {x, y}, r});
}

Dim make_mod(const Dim& x, const Dim& y) {
  const DimRange rx = range(x), ry = range(y);
  DimRange r{0, ry.hi == DimRange::kMax ? DimRange::kMax : std::max<int64_t>(ry.hi - 1, 0)};
  if (rx.lo >= 0) r.hi = std::min(r.hi, rx.hi);
  return DimImpl::from_atom({Kind::mod, {}, {x, y}, r});
}

Dim scaled(const DimTerm& t, int64_t coefficient) {
  return coefficient ? DimImpl::make({{coefficient, t.factors}}) : Dim(0);
}

/// Greatest common divisor of d and the coefficients of the non-constant terms.
int64_t common_factor(const Dim& x, int64_t d) {
  uint64_t g = static_cast<uint64_t>(d);
  for (const DimTerm& t : DimImpl::terms(x)) {
    if (t.factors.empty()) continue;
    const uint64_t c = t.coefficient < 0 ? -static_cast<uint64_t>(t.coefficient) : static_cast<uint64_t>(t.coefficient);
    g = std::gcd(g, c);
  }
  return static_cast<int64_t>(g);
}

Dim floor_divide_terms(const Dim& x, int64_t g) {
  Dim r = 0;
  for (const DimTerm& t : DimImpl::terms(x)) r = r + scaled(t, floor_divide(t.coefficient, g));
  return r;
}

int64_t constant_term(const Dim& x) {
  const auto& terms = DimImpl::terms(x);
  return !terms.empty() && terms.back().factors.empty() ? terms.back().coefficient : 0;
}

bool within(const Dim& x, int64_t lo, int64_t hi) { return range(x).lo >= lo && range(x).hi <= hi; }

Dim floordiv_by_constant(const Dim& a, int64_t d) {
  if (d == 1) return a;
  // floordiv(d*x + y, d) = x + floordiv(y, d)
  Dim whole = 0, rest = 0;
  for (const DimTerm& t : DimImpl::terms(a)) {
    const int64_t q = t.factors.empty() ? floor_divide(t.coefficient, d) : t.coefficient / d;
    whole = whole + scaled(t, q);
    rest = rest + scaled(t, t.coefficient - q * d);
  }
  if (within(rest, 0, d - 1)) return whole;
  // floordiv(g*x + k, g*d) = floordiv(x + floor(k/g), d)
  if (const int64_t g = common_factor(rest, d); g > 1) {
    rest = floor_divide_terms(rest, g);
    d /= g;
    if (d == 1) return whole + rest;
  }
  // floordiv(-x, d) = -floordiv(x + d-1, d): one form for both ways to write ceil(x / d)
  const bool negative = DimImpl::terms(rest)[0].coefficient < 0;
  if (negative) rest = Dim(d - 1) - rest;
  // floordiv(floordiv(x, p) + k, d) = floordiv(x + k*p, p*d)
  const auto& lead = DimImpl::terms(rest)[0];
  const int64_t k = constant_term(rest);
  Dim quotient;
  if (lead.coefficient == 1 && lead.factors.size() == 1 && lead.factors[0]->kind == Kind::floordiv &&
      DimImpl::terms(rest).size() == (k ? 2u : 1u) && lead.factors[0]->operands[1].is_const()) {
    const Dim& p = lead.factors[0]->operands[1];
    quotient = floordiv(lead.factors[0]->operands[0] + p * k, p * d);
  } else {
    quotient = make_floordiv(rest, d);
  }
  return negative ? whole - quotient : whole + quotient;
}

Dim mod_by_constant(const Dim& a, int64_t d) {
  // mod(k*x + y, d) = mod(mod(k, d)*x + y, d);  mod(mod(x, k*d) + y, d) = mod(x + y, d)
  Dim rest = 0;
  for (const DimTerm& t : DimImpl::terms(a)) {
    const int64_t c = t.coefficient - floor_divide(t.coefficient, d) * d;
    const DimAtom* atom = t.factors.size() == 1 ? t.factors[0].get() : nullptr;
    if (atom && atom->kind == Kind::mod && atom->operands[1].divisible_by(d)) {
      rest = rest + atom->operands[0] * c;
    } else {
      rest = rest + scaled(t, c);
    }
  }
  if (within(rest, 0, d - 1)) return rest;
  // mod(g*x + k, g*d) = g*mod(x + floor(k/g), d) + mod(k, g)
  if (const int64_t g = common_factor(rest, d); g > 1) {
    const int64_t k = constant_term(rest);
    return mod(floor_divide_terms(rest, g), d / g) * g + (k - floor_divide(k, g) * g);
  }
  // Coefficients reduced above may have come from a nested mod: reduce again only if that changed something.
  for (const DimTerm& t : DimImpl::terms(rest))
    if (t.coefficient < 0 || t.coefficient >= d) return mod_by_constant(rest, d);
  return make_mod(rest, d);
}

/// t / by if by's factors are among t's and the coefficient divides.
std::optional<DimTerm> divide(const DimTerm& t, const DimTerm& by) {
  if (t.coefficient % by.coefficient != 0 || (t.coefficient == DimRange::kMin && by.coefficient == -1))
    return std::nullopt;
  DimTerm q{t.coefficient / by.coefficient, {}};
  size_t i = 0;
  for (const DimAtomPtr& f : t.factors) {
    if (i < by.factors.size() && compare(*f, *by.factors[i]) == 0) {
      ++i;
    } else {
      q.factors.push_back(f);
    }
  }
  if (i != by.factors.size()) return std::nullopt;
  return q;
}

/// Polynomial division; terms are in graded lexicographic order, so leading terms multiply to leading terms.
std::optional<Dim> divide_exactly(const Dim& a, const Dim& b) {
  Dim rest = a, quotient = 0;
  try {
    for (int step = 0; step < 64 && !DimImpl::terms(rest).empty(); ++step) {
      const auto q = divide(DimImpl::terms(rest)[0], DimImpl::terms(b)[0]);
      if (!q) return std::nullopt;
      const Dim term = DimImpl::make({*q});
      quotient = quotient + term;
      rest = rest - term * b;
    }
  } catch (const Error&) {
    return std::nullopt;
  }
  if (!DimImpl::terms(rest).empty()) return std::nullopt;
  return quotient;
}

/// A term that divides every term of a and b: the common coefficient and the common nonnegative atoms.
DimTerm common_term(const Dim& a, const Dim& b) {
  DimTerm common = DimImpl::terms(b)[0];
  std::erase_if(common.factors, [](const DimAtomPtr& f) { return f->range.lo < 0; });
  uint64_t g = 0;
  for (const Dim* d : {&a, &b}) {
    for (const DimTerm& t : DimImpl::terms(*d)) {
      g = std::gcd(g, t.coefficient < 0 ? -static_cast<uint64_t>(t.coefficient) : static_cast<uint64_t>(t.coefficient));
      std::vector<DimAtomPtr> both;
      std::set_intersection(common.factors.begin(), common.factors.end(), t.factors.begin(), t.factors.end(),
                            std::back_inserter(both),
                            [](const DimAtomPtr& x, const DimAtomPtr& y) { return compare(*x, *y) < 0; });
      common.factors = std::move(both);
    }
  }
  common.coefficient = g > static_cast<uint64_t>(DimRange::kMax) ? 1 : static_cast<int64_t>(g);
  return common;
}

Dim divide_all(const Dim& a, const DimTerm& by) {
  std::vector<DimTerm> terms;
  for (const DimTerm& t : DimImpl::terms(a)) terms.push_back(*divide(t, by));
  return DimImpl::make(std::move(terms));
}

void check_divisor(std::string_view op, const Dim& a, const Dim& b) {
  if (range(b).hi <= 0)
    throw_shape_error("division by a size that is not positive: " + std::string(op) + "(" + a.str() + ", " + b.str() +
                      ")");
}

/// The part of `a` that is a multiple of b, over b; b is one term.
Dim multiples(const Dim& a, const Dim& b) {
  Dim whole = 0;
  if (DimImpl::terms(b).size() != 1) return whole;
  for (const DimTerm& t : DimImpl::terms(a))
    if (const auto q = divide(t, DimImpl::terms(b)[0])) whole = whole + DimImpl::make({*q});
  return whole;
}

bool known_le(const Dim& a, const Dim& b) {
  if (range(a).hi <= range(b).lo) return true;
  try {
    return range(b - a).lo >= 0;
  } catch (const Error&) {
    return false;
  }
}

Dim extremum(Kind kind, const Dim& a, const Dim& b) {
  // max(max(x, y), z) = max(x, y, z);  max(x, y) = x if x >= y
  const auto flatten = [&](const Dim& d) {
    const Dim::View v = d.view();
    return v.kind == kind ? v.operands : std::vector<Dim>{d};
  };
  const auto loses = [&](const Dim& x, const Dim& y) { return kind == Kind::max ? known_le(x, y) : known_le(y, x); };
  std::vector<Dim> kept = flatten(a);
  for (const Dim& x : flatten(b)) {
    if (std::any_of(kept.begin(), kept.end(), [&](const Dim& y) { return loses(x, y); })) continue;
    std::erase_if(kept, [&](const Dim& y) { return loses(y, x); });
    kept.push_back(x);
  }
  if (kept.size() == 1) return kept[0];
  if (kept.size() > 32) throw_shape_error("a size expression takes min or max of more than 32 operands");
  std::sort(kept.begin(), kept.end());
  DimRange r = range(kept[0]);
  for (const Dim& x : kept) {
    r.lo = kind == Kind::max ? std::max(r.lo, range(x).lo) : std::min(r.lo, range(x).lo);
    r.hi = kind == Kind::max ? std::max(r.hi, range(x).hi) : std::min(r.hi, range(x).hi);
  }
  return DimImpl::from_atom({kind, {}, std::move(kept), r});
}

}  // namespace

Dim floordiv(const Dim& a, const Dim& b) {
  check_divisor("floordiv", a, b);
  if (const auto d = b.as_const()) return floordiv_by_constant(a, *d);
  // floordiv(x*y, y) = x
  if (const auto q = divide_exactly(a, b)) return *q;
  // floordiv(x*y + z, y) = x + floordiv(z, y)
  const Dim whole = multiples(a, b);
  const Dim rest = a - whole * b;
  // floordiv(g*x, g*y) = floordiv(x, y)
  const DimTerm g = common_term(rest, b);
  if (g.coefficient != 1 || !g.factors.empty()) return whole + floordiv(divide_all(rest, g), divide_all(b, g));
  if (range(rest).lo >= 0 && known_le(rest + 1, b)) return whole;
  return whole + make_floordiv(rest, b);
}

Dim mod(const Dim& a, const Dim& b) {
  check_divisor("mod", a, b);
  if (const auto d = b.as_const()) return mod_by_constant(a, *d);
  // mod(x*y, y) = 0
  if (divide_exactly(a, b)) return 0;
  // mod(x*y + z, y) = mod(z, y)
  const Dim rest = a - multiples(a, b) * b;
  // mod(g*x, g*y) = g*mod(x, y)
  const DimTerm g = common_term(rest, b);
  if (g.coefficient != 1 || !g.factors.empty()) return DimImpl::make({g}) * mod(divide_all(rest, g), divide_all(b, g));
  if (range(rest).lo >= 0 && known_le(rest + 1, b)) return rest;
  return make_mod(rest, b);
}

Dim ceildiv(const Dim& a, const Dim& b) { return floordiv(a + b - 1, b); }
Dim min(const Dim& a, const Dim& b) { return extremum(Kind::min, a, b); }
Dim max(const Dim& a, const Dim& b) { return extremum(Kind::max, a, b); }
Dim round_up(const Dim& a, int64_t n) { return ceildiv(a, n) * n; }

}  // namespace cuvil
