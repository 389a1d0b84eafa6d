// Index arithmetic: i64 scalars. Sums become linear forms; floordiv, %, min, max and comparisons are decided by what is
// known of the variables. d is a positive constant, n any divisor, k a constant, x and y index expressions.
#include <algorithm>
#include <numeric>

#include "core/kernel/simplifier.h"

namespace cuvil::kernel {
namespace {

int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

/// The only term of l if that has coefficient 1 and operator `op`.
const Expr* single(const Linear& l, Op op) {
  return l.terms.size() == 1 && l.terms[0].second == 1 && l.terms[0].first->op == op ? &l.terms[0].first : nullptr;
}

int64_t common_factor(const Linear& l, int64_t d) {
  uint64_t g = static_cast<uint64_t>(d);
  for (const auto& [term, c] : l.terms) g = std::gcd(g, c < 0 ? -static_cast<uint64_t>(c) : static_cast<uint64_t>(c));
  return static_cast<int64_t>(g);
}

Linear divided(Linear l, int64_t g) {
  for (auto& [term, c] : l.terms) c /= g;
  l.constant = floor_divide(l.constant, g);
  return l;
}

Linear shifted(Linear l, int64_t by) {
  l.constant = static_cast<int64_t>(static_cast<uint64_t>(l.constant) + static_cast<uint64_t>(by));
  return l;
}

}  // namespace

Expr ExprSimplifier::index_rules(Op op, const Args& a) {
  switch (op) {
    case Op::add:
    case Op::sub: {
      Linear l = facts.sum(facts.linear(a[0]), facts.linear(a[1]), op == Op::add ? 1 : -1);
      if (l.terms.size() <= IndexFacts::kMaxTerms) return facts.expression(std::move(l));
      const Expr e = raw(op, kIndex, a);
      facts.keep_as_term(e);
      return e;
    }
    case Op::neg:
      return facts.expression(facts.scaled(facts.linear(a[0]), -1));
    case Op::mul:
      return facts.expression(facts.product(facts.linear(a[0]), facts.linear(a[1])));
    case Op::floordiv:
      return floordiv(a[0], a[1]);
    case Op::floormod:
      return floormod(a[0], a[1]);
    case Op::div:
      // x / d = floordiv(x, d) for x >= 0
      if (facts.bounds(a[0]).lo >= 0 && facts.bounds(a[1]).lo > 0) return floordiv(a[0], a[1]);
      return {};
    case Op::min:
    case Op::max:
      return extremum(op, a[0], a[1]);
    case Op::abs:
      if (facts.bounds(a[0]).lo >= 0) return a[0];
      return {};
    case Op::lt:
    case Op::le:
    case Op::gt:
    case Op::ge:
    case Op::eq:
    case Op::ne: {
      const Linear difference = facts.sum(facts.linear(a[1]), facts.linear(a[0]), -1);
      if (!facts.bounds(a[0]).exact() || !facts.bounds(a[1]).exact()) {
        // Wrapping arithmetic still knows equality.
        if (difference.is_const() && (op == Op::eq || op == Op::ne || difference.constant == 0)) {
          const bool equal = difference.constant == 0;
          const bool holds = op == Op::ne ? !equal : equal && (op == Op::eq || op == Op::le || op == Op::ge);
          return intern_(const_int(kBool, holds));
        }
        return {};
      }
      if (Expr r = compare(op, difference)) return r;
      if (!facts.bounds(a[0]).index || !facts.bounds(a[1]).index) return {};
      // x - 2 >= y - i becomes x + i >= y + 2: what is subtracted changes sides.
      Linear left{{}, difference.constant < 0 ? -difference.constant : 0};
      Linear right{{}, difference.constant > 0 ? difference.constant : 0};
      for (const auto& [term, c] : difference.terms) (c < 0 ? left : right).terms.emplace_back(term, c < 0 ? -c : c);
      return raw(op, kBool, {facts.expression(left), facts.expression(right)});
    }
    default:
      return {};
  }
}

/// a OP b with difference = b - a, if decided.
Expr ExprSimplifier::compare(Op op, const Linear& difference) {
  const Linear reverse = facts.scaled(difference, -1);
  const auto at_least = [&](const Linear& l, int64_t n) { return facts.never_negative(shifted(l, -n)); };
  const auto decide = [&](bool yes, bool no) -> Expr {
    if (yes) return intern_(const_int(kBool, 1));
    if (no) return intern_(const_int(kBool, 0));
    return {};
  };
  switch (op) {
    case Op::lt:
      return decide(at_least(difference, 1), at_least(reverse, 0));
    case Op::le:
      return decide(at_least(difference, 0), at_least(reverse, 1));
    case Op::gt:
      return decide(at_least(reverse, 1), at_least(difference, 0));
    case Op::ge:
      return decide(at_least(reverse, 0), at_least(difference, 1));
    default: {
      const bool same = at_least(difference, 0) && at_least(reverse, 0);
      const bool differ = !same && (at_least(difference, 1) || at_least(reverse, 1));
      return op == Op::eq ? decide(same, differ) : decide(differ, same);
    }
  }
}

Expr ExprSimplifier::extremum(Op op, const Expr& a, const Expr& b) {
  if (a.get() == b.get()) return a;
  if (!facts.bounds(a).exact() || !facts.bounds(b).exact()) return {};
  // min(x, y) = x if x <= y
  const Linear difference = facts.sum(facts.linear(b), facts.linear(a), -1);
  if (facts.never_negative(difference)) return op == Op::min ? a : b;
  if (facts.never_negative(facts.scaled(difference, -1))) return op == Op::min ? b : a;
  // min(min(x, k), l) = min(x, min(k, l))
  if (a->op == op && b->op == Op::const_int && a->args[1]->op == Op::const_int) {
    const int64_t k = a->args[1]->int_value, l = b->int_value;
    return apply(op, kIndex, {a->args[0], index(op == Op::min ? std::min(k, l) : std::max(k, l))});
  }
  // The constant goes last.
  if (a->op == Op::const_int) return apply(op, kIndex, {b, a});
  return {};
}

bool ExprSimplifier::split(const Linear& numerator, const Expr& divisor, Linear& quotient, Linear& rest) {
  if (divisor->op == Op::const_int) {
    const int64_t d = divisor->int_value;
    quotient.constant = floor_divide(numerator.constant, d);
    rest.constant = numerator.constant - quotient.constant * d;
    for (const auto& [term, c] : numerator.terms) {
      if (c / d != 0) quotient.terms.emplace_back(term, c / d);
      if (c % d != 0) rest.terms.emplace_back(term, c % d);
    }
    return true;
  }
  // Terms that have the divisor, a product of variables, among their factors.
  const Linear by = facts.linear(divisor);
  if (by.terms.size() != 1 || by.constant != 0 || by.terms[0].second != 1) return false;
  rest.constant = numerator.constant;
  for (const auto& [term, c] : numerator.terms) {
    std::vector<Expr> left = factors_of(term);
    bool divides = true;
    for (const Expr& f : factors_of(by.terms[0].first)) {
      const auto at = std::find_if(left.begin(), left.end(), [&](const Expr& x) { return x.get() == f.get(); });
      divides = divides && at != left.end();
      if (!divides) break;
      left.erase(at);
    }
    if (!divides) {
      rest = facts.sum(rest, {{{term, 1}}, 0}, c);
      continue;
    }
    Linear others{{}, 1};
    for (const Expr& f : left) others = facts.product(others, {{{f, 1}}, 0});
    quotient = facts.sum(quotient, others, c);
  }
  return true;
}

Expr ExprSimplifier::floordiv(const Expr& a, const Expr& b) {
  const bool constant = b->op == Op::const_int;
  if (constant && b->int_value == 1) return a;
  if (constant && b->int_value <= 0) return {};
  if (!facts.bounds(a).exact() || !facts.bounds(b).exact()) return {};
  Linear quotient, rest;
  if (!split(facts.linear(a), b, quotient, rest)) {
    rest = facts.linear(a);
    quotient = {};
  }
  // floordiv(x*n + y, n) = x if 0 <= y < n, which implies n > 0
  const Linear room = facts.sum(shifted(facts.linear(b), -1), rest, -1);
  if (facts.never_negative(rest) && facts.never_negative(room)) return facts.expression(quotient);
  if (!constant) return {};
  int64_t d = b->int_value;
  // floordiv(y, d) = k if k*d <= y < (k+1)*d
  const Bounds r = facts.bounds(rest);
  if (r.finite() && floor_divide(r.lo, d) == floor_divide(r.hi, d))
    return facts.expression(shifted(quotient, floor_divide(r.lo, d)));
  // floordiv(g*x + k, g*d) = floordiv(x + floor(k/g), d)
  if (const int64_t g = common_factor(rest, d); g > 1) {
    rest = divided(rest, g);
    d /= g;
    if (d == 1) return facts.expression(facts.sum(quotient, rest));
  }
  // floordiv(floordiv(x, k) + l, d) = floordiv(x + l*k, k*d)
  if (const Expr* inner = single(rest, Op::floordiv); inner && (*inner)->args[1]->op == Op::const_int) {
    const int64_t k = (*inner)->args[1]->int_value;
    int64_t kd = 0, lk = 0;
    if (k > 0 && !__builtin_mul_overflow(k, d, &kd) && !__builtin_mul_overflow(k, rest.constant, &lk)) {
      const Expr x = facts.expression(shifted(facts.linear((*inner)->args[0]), lk));
      return facts.expression(facts.sum(quotient, facts.linear(apply(Op::floordiv, kIndex, {x, index(kd)}))));
    }
  }
  const Expr q = raw(Op::floordiv, kIndex, {facts.expression(rest), index(d)});
  return facts.expression(facts.sum(quotient, facts.linear(q)));
}

Expr ExprSimplifier::floormod(const Expr& a, const Expr& b) {
  const bool constant = b->op == Op::const_int;
  if (constant && b->int_value == 1) return index(0);
  if (constant && b->int_value <= 0) return {};
  if (!facts.bounds(a).exact() || !facts.bounds(b).exact()) return {};
  Linear quotient, rest;
  if (!split(facts.linear(a), b, quotient, rest)) {
    rest = facts.linear(a);
    quotient = {};
  }
  // (x*n + y) % n = y if 0 <= y < n, which implies n > 0
  const Linear room = facts.sum(shifted(facts.linear(b), -1), rest, -1);
  if (facts.never_negative(rest) && facts.never_negative(room)) return facts.expression(rest);
  if (!constant) return {};
  const int64_t d = b->int_value;
  // y % d = y - k*d if k*d <= y < (k+1)*d
  const Bounds r = facts.bounds(rest);
  if (r.finite() && floor_divide(r.lo, d) == floor_divide(r.hi, d))
    return facts.expression(shifted(rest, -floor_divide(r.lo, d) * d));
  // (x % (k*d) + y) % d = (x + y) % d
  for (const auto& [term, c] : rest.terms) {
    if (term->op != Op::floormod || term->args[1]->op != Op::const_int) continue;
    const int64_t m = term->args[1]->int_value;
    if (m <= 0 || m % d != 0) continue;
    const Linear without = facts.sum(rest, {{{term, c}}, 0}, -1);
    return apply(Op::floormod, kIndex, {facts.expression(facts.sum(without, facts.linear(term->args[0]), c)), b});
  }
  // (g*x + k) % (g*d) = g*((x + floor(k/g)) % d) + k % g
  if (const int64_t g = common_factor(rest, d); g > 1) {
    const int64_t low = rest.constant - floor_divide(rest.constant, g) * g;
    if (g == d) return index(low);
    const Expr m = apply(Op::floormod, kIndex, {facts.expression(divided(rest, g)), index(d / g)});
    return facts.expression(shifted(facts.scaled(facts.linear(m), g), low));
  }
  return raw(Op::floormod, kIndex, {facts.expression(rest), b});
}

}  // namespace cuvil::kernel
