#include "core/kernel/index_facts.h"

#include <algorithm>

namespace cuvil::kernel {
namespace {

using i128 = __int128;

int64_t wrap_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrap_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

int64_t clamp(i128 v) {
  return v <= Bounds::kMin ? Bounds::kMin : v >= Bounds::kMax ? Bounds::kMax : static_cast<int64_t>(v);
}

// Infinity as 2^63, so that clamp() restores it and 0 * infinity is 0.
i128 wide(int64_t v) { return v == Bounds::kMax ? i128{1} << 63 : i128{v}; }

Bounds unknown(bool index) { return {Bounds::kMin, Bounds::kMax, index}; }

Bounds add(Bounds a, Bounds b) {
  const bool index = a.index && b.index;
  if (!a.exact() || !b.exact()) return unknown(false);
  const int64_t lo = a.lo == Bounds::kMin || b.lo == Bounds::kMin ? Bounds::kMin : clamp(i128{a.lo} + b.lo);
  const int64_t hi = a.hi == Bounds::kMax || b.hi == Bounds::kMax ? Bounds::kMax : clamp(i128{a.hi} + b.hi);
  return {lo, hi, index};
}

Bounds multiply(Bounds a, Bounds b) {
  if (!a.exact() || !b.exact()) return unknown(false);
  const i128 p[] = {wide(a.lo) * wide(b.lo), wide(a.lo) * wide(b.hi), wide(a.hi) * wide(b.lo), wide(a.hi) * wide(b.hi)};
  return {clamp(*std::min_element(p, p + 4)), clamp(*std::max_element(p, p + 4)), a.index && b.index};
}

int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

Bounds divide(Bounds a, Bounds b) {
  if (b.lo <= 0) return unknown(a.index && b.index);
  const auto corner = [](int64_t x, int64_t y) {
    if (y == Bounds::kMax) return x < 0 ? int64_t{-1} : int64_t{0};
    return x == Bounds::kMin || x == Bounds::kMax ? x : floor_divide(x, y);
  };
  return {corner(a.lo, a.lo < 0 ? b.lo : b.hi), corner(a.hi, a.hi < 0 ? b.hi : b.lo), a.index && b.index};
}

Bounds modulo(Bounds a, Bounds b) {
  if (b.lo < 0) return unknown(a.index && b.index);
  Bounds r{0, b.hi == Bounds::kMax ? Bounds::kMax : std::max<int64_t>(b.hi - 1, 0), a.index && b.index};
  if (a.lo >= 0) r.hi = std::min(r.hi, a.hi);
  return r;
}

Bounds of_type(DType t) {
  switch (t) {
    case DType::boolean:
      return {0, 1, false};
    case DType::u8:
      return {0, 255, false};
    case DType::i8:
      return {-128, 127, false};
    case DType::u16:
      return {0, 65535, false};
    case DType::i16:
      return {-32768, 32767, false};
    case DType::u32:
      return {0, 4294967295, false};
    case DType::i32:
      return {-2147483648, 2147483647, false};
    default:
      return unknown(false);
  }
}

}  // namespace

std::vector<Expr> factors_of(const Expr& term) {
  if (term->op != Op::mul) return {term};
  std::vector<Expr> r = factors_of(term->args[0]);
  r.push_back(term->args[1]);
  return r;
}

Expr IndexFacts::raw(Op op, const Expr& a, const Expr& b) const {
  return intern_(Expr(std::make_shared<const ExprNode>(ExprNode{op, a.type(), {a, b}})));
}

Expr IndexFacts::multiply_terms(const Expr& a, const Expr& b) const {
  std::vector<Expr> f = factors_of(a), g = factors_of(b);
  f.insert(f.end(), g.begin(), g.end());
  std::sort(f.begin(), f.end(), [&](const Expr& x, const Expr& y) { return intern_.id(x) < intern_.id(y); });
  Expr r = f[0];
  for (size_t i = 1; i < f.size(); ++i) r = raw(Op::mul, r, f[i]);
  return r;
}

// ---- linear forms

Linear IndexFacts::linear(const Expr& e) const {
  if (!opaque_.empty() && opaque_.count(e.get()) != 0) return {{{e, 1}}, 0};
  switch (e->op) {
    case Op::const_int:
      return {{}, e->int_value};
    case Op::add:
      return sum(linear(e->args[0]), linear(e->args[1]));
    case Op::sub:
      return sum(linear(e->args[0]), linear(e->args[1]), -1);
    case Op::neg:
      return scaled(linear(e->args[0]), -1);
    case Op::mul:
      if (e->args[1]->op == Op::const_int) return scaled(linear(e->args[0]), e->args[1]->int_value);
      return {{{e, 1}}, 0};
    default:
      return {{{e, 1}}, 0};
  }
}

Linear IndexFacts::sum(const Linear& a, const Linear& b, int64_t scale_b) const {
  Linear r;
  r.constant = wrap_add(a.constant, wrap_mul(b.constant, scale_b));
  auto i = a.terms.begin(), j = b.terms.begin();
  const auto add = [&r](const Expr& term, int64_t c) {
    if (c != 0) r.terms.emplace_back(term, c);
  };
  while (i != a.terms.end() || j != b.terms.end()) {
    const int x = i == a.terms.end() ? std::numeric_limits<int>::max() : intern_.id(i->first);
    const int y = j == b.terms.end() ? std::numeric_limits<int>::max() : intern_.id(j->first);
    if (x < y) {
      add(i->first, i->second);
      ++i;
    } else if (y < x) {
      add(j->first, wrap_mul(j->second, scale_b));
      ++j;
    } else {
      add(i->first, wrap_add(i->second, wrap_mul(j->second, scale_b)));
      ++i;
      ++j;
    }
  }
  return r;
}

Linear IndexFacts::scaled(const Linear& a, int64_t by) const { return sum({}, a, by); }

Linear IndexFacts::product(const Linear& a, const Linear& b) {
  if (a.is_const()) return scaled(b, a.constant);
  if (b.is_const()) return scaled(a, b.constant);
  // (x + y) * z = x*z + y*z while the result stays short
  const bool one = (a.terms.size() == 1 && a.constant == 0) || (b.terms.size() == 1 && b.constant == 0);
  if (!one && a.terms.size() * b.terms.size() > 4) return {{{multiply_terms(expression(a), expression(b)), 1}}, 0};
  Linear r{{}, wrap_mul(a.constant, b.constant)};
  r = sum(r, {a.terms, 0}, b.constant);
  r = sum(r, {b.terms, 0}, a.constant);
  for (const auto& [x, cx] : a.terms)
    for (const auto& [y, cy] : b.terms) r = sum(r, {{{multiply_terms(x, y), 1}}, 0}, wrap_mul(cx, cy));
  return r;
}

Expr IndexFacts::expression(Linear l) {
  // d*floordiv(x, d) + x % d = x
  for (size_t i = 0; i < l.terms.size(); ++i) {
    const auto [m, c] = l.terms[i];
    if (m->op != Op::floormod || m->args[1]->op != Op::const_int || m->args[1]->int_value <= 0) continue;
    for (const auto& [q, k] : l.terms) {
      if (q->op != Op::floordiv || q->args[0].get() != m->args[0].get() || q->args[1].get() != m->args[1].get() ||
          k != wrap_mul(c, m->args[1]->int_value))
        continue;
      Linear pair = sum({{{q, k}}, 0}, {{{m, c}}, 0});
      return expression(sum(sum(l, pair, -1), linear(m->args[0]), c));
    }
  }
  const auto scaled_term = [&](const Expr& term, int64_t c) {
    return c == 1 ? term : raw(Op::mul, term, intern_(const_int(kIndex, c)));
  };
  // A positive term leads if there is one; then the rest in order; the constant comes last.
  Expr r;
  size_t lead = 0;
  while (lead < l.terms.size() && l.terms[lead].second < 0) ++lead;
  if (lead < l.terms.size()) r = scaled_term(l.terms[lead].first, l.terms[lead].second);
  for (size_t i = 0; i < l.terms.size(); ++i) {
    const auto& [term, c] = l.terms[i];
    if (i == lead) continue;
    if (!r) {
      r = scaled_term(term, c);
    } else if (c < 0 && c != Bounds::kMin) {
      r = raw(Op::sub, r, scaled_term(term, -c));
    } else {
      r = raw(Op::add, r, scaled_term(term, c));
    }
  }
  if (!r) return intern_(const_int(kIndex, l.constant));
  if (l.constant == 0) return r;
  if (l.constant < 0 && l.constant != Bounds::kMin) return raw(Op::sub, r, intern_(const_int(kIndex, -l.constant)));
  return raw(Op::add, r, intern_(const_int(kIndex, l.constant)));
}

// ---- variables

void IndexFacts::alternatives(const Expr& e, Op op, int64_t offset, std::vector<Linear>& out) const {
  if (e->op == op) {
    alternatives(e->args[0], op, offset, out);
    alternatives(e->args[1], op, offset, out);
    return;
  }
  Linear l = linear(e);
  // min(a, b) + c, as in "16*i + min(...)": split the first such term.
  for (size_t i = 0; i < l.terms.size() && out.size() < 4; ++i) {
    const auto [term, c] = l.terms[i];
    if (term->op != op || c != 1) continue;
    l.terms.erase(l.terms.begin() + static_cast<std::ptrdiff_t>(i));
    for (const Expr& a : term->args) {
      Linear alternative = sum(l, linear(a));
      alternative.constant = wrap_add(alternative.constant, offset);
      out.push_back(std::move(alternative));
    }
    return;
  }
  l.constant = wrap_add(l.constant, offset);
  out.push_back(std::move(l));
}

void IndexFacts::bind_range(const Var& var, const Expr& begin, const Expr& end, int64_t step) {
  Fact f;
  intern_(Expr(var));  // numbers variables from the outside in: the order in which sums are written
  f.order = static_cast<int>(facts_.size());
  const Bounds b = bounds(begin), e = bounds(end);
  f.bounds = {b.lo, e.hi == Bounds::kMax ? Bounds::kMax : e.hi - 1, b.index && e.index};
  if (b.lo == b.hi && e.lo == e.hi && f.bounds.hi >= b.lo) f.bounds.hi = b.lo + (f.bounds.hi - b.lo) / step * step;
  if (f.bounds.hi < f.bounds.lo) f.bounds.hi = f.bounds.lo;  // an empty loop: nothing runs, anything holds
  if (b.index) alternatives(begin, Op::max, 0, f.lower);
  if (e.index) alternatives(end, Op::min, -1, f.upper);
  facts_[var.get()] = std::move(f);
}

void IndexFacts::bind_at_least(const Var& var, int64_t lo) {
  intern_(Expr(var));
  facts_[var.get()] = {static_cast<int>(facts_.size()), {}, {}, {lo, Bounds::kMax, true}};
}

void IndexFacts::bind_value(const Var& var, const Expr& value) {
  Fact f;
  intern_(Expr(var));  // numbers variables from the outside in: the order in which sums are written
  f.order = static_cast<int>(facts_.size());
  f.bounds = bounds(value);
  // A value from memory may change while its name does not.
  if (value.type() == kIndex && f.bounds.index) f.lower = f.upper = {linear(value)};
  facts_[var.get()] = std::move(f);
}

void IndexFacts::push(const Expr& condition, bool value) {
  marks_.push_back(assumed_.size());
  assume(condition, value);
}

void IndexFacts::pop() {
  assumed_.resize(marks_.back());
  marks_.pop_back();
}

void IndexFacts::assume(const Expr& c, bool value) {
  if (c.type() == kBool && c->op == (value ? Op::bit_and : Op::bit_or)) {
    for (const Expr& a : c->args) assume(a, value);
    return;
  }
  if (c->op == Op::bit_not) return assume(c->args[0], !value);
  if (c->op < Op::eq || c->op > Op::ge || c->args[0].type() != kIndex) return;
  if (!bounds(c->args[0]).index || !bounds(c->args[1]).index) return;
  const Linear a = linear(c->args[0]), b = linear(c->args[1]);
  const auto at_least = [&](const Linear& x, const Linear& y, int64_t more) {  // x - y - more >= 0
    Linear l = sum(x, y, -1);
    l.constant = wrap_add(l.constant, -more);
    assumed_.push_back(std::move(l));
  };
  switch (c->op) {
    case Op::lt:
      return value ? at_least(b, a, 1) : at_least(a, b, 0);
    case Op::le:
      return value ? at_least(b, a, 0) : at_least(a, b, 1);
    case Op::gt:
      return value ? at_least(a, b, 1) : at_least(b, a, 0);
    case Op::ge:
      return value ? at_least(a, b, 0) : at_least(b, a, 1);
    case Op::eq:
      if (value) at_least(a, b, 0), at_least(b, a, 0);
      return;
    default:
      if (!value) at_least(a, b, 0), at_least(b, a, 0);
      return;
  }
}

// ---- bounds and proofs

Bounds IndexFacts::bounds(const Expr& e) {
  if (const auto it = bounds_.find(e.get()); it != bounds_.end()) return it->second;
  Bounds b = compute_bounds(e);
  if (e.type() != kIndex) {  // narrower arithmetic wraps: leaving the type's range means anything
    const Bounds t = of_type(e.type().dtype);
    if (b.lo < t.lo || b.hi > t.hi) b = t;
    b.index = false;
  }
  bounds_[e.get()] = b;
  return b;
}

Bounds IndexFacts::compute_bounds(const Expr& e) {
  if (e.type().is_vector() || is_float(e.type().dtype)) return unknown(false);
  const auto of = [&](size_t i) { return bounds(e->args[i]); };
  switch (e->op) {
    case Op::const_int:
      return {e->int_value, e->int_value, true};
    case Op::var: {
      const auto it = facts_.find(e->variable.get());
      return it == facts_.end() ? unknown(true) : it->second.bounds;
    }
    case Op::add:
      return add(of(0), of(1));
    case Op::sub:
      return add(of(0), multiply(of(1), {-1, -1, true}));
    case Op::neg:
      return multiply(of(0), {-1, -1, true});
    case Op::mul:
      return multiply(of(0), of(1));
    case Op::floordiv:
      return divide(of(0), of(1));
    case Op::div:
      return of(0).lo >= 0 ? divide(of(0), of(1)) : unknown(of(0).index && of(1).index);
    case Op::floormod:
      return modulo(of(0), of(1));
    case Op::min: {
      const Bounds a = of(0), b = of(1);
      return {std::min(a.lo, b.lo), std::min(a.hi, b.hi), a.index && b.index};
    }
    case Op::max: {
      const Bounds a = of(0), b = of(1);
      return {std::max(a.lo, b.lo), std::max(a.hi, b.hi), a.index && b.index};
    }
    case Op::select: {
      const Bounds a = of(1), b = of(2);
      return {std::min(a.lo, b.lo), std::max(a.hi, b.hi), a.index && b.index};
    }
    case Op::cast: {
      const Type from = e->args[0].type();
      if (is_float(from.dtype)) return of_type(e.type().dtype);
      const Bounds b = of(0), t = of_type(e.type().dtype);
      if (e.type().dtype == DType::boolean || e.type().dtype == DType::u64 || from.dtype == DType::u64) return t;
      return b.lo < t.lo || b.hi > t.hi ? t : Bounds{b.lo, b.hi, b.index};
    }
    default:
      return of_type(e.type().dtype);
  }
}

Bounds IndexFacts::bounds(const Linear& l) {
  Bounds r{l.constant, l.constant, true};
  for (const auto& [term, c] : l.terms) r = add(r, multiply(bounds(term), {c, c, true}));
  return r;
}

bool IndexFacts::prove_by_parts(const Linear& l, int budget) {
  for (const auto& [term, c] : l.terms) {
    const Linear rest = sum(l, {{{term, c}}, 0}, -1);
    if (term->op == Op::min || term->op == Op::max) {
      // c * min(x, y) is one of c*x and c*y: the smaller one for c > 0, the larger one for c < 0.
      const auto with = [&](size_t i) { return prove(sum(rest, linear(term->args[i]), c), budget / 2); };
      return (term->op == Op::min) == (c > 0) ? with(0) && with(1) : with(0) || with(1);
    }
    if (term->op == Op::floordiv && term->args[1]->op == Op::const_int && term->args[1]->int_value > 0 &&
        c % term->args[1]->int_value == 0) {
      // x - (d-1) <= d * floordiv(x, d) <= x
      const int64_t d = term->args[1]->int_value, k = c / d;
      Linear candidate = sum(rest, linear(term->args[0]), k);
      if (k > 0) candidate.constant = wrap_add(candidate.constant, wrap_mul(-k, d - 1));
      if (prove(candidate, budget / 2)) return true;
    }
  }
  return false;
}

bool IndexFacts::prove(const Linear& l, int budget) {
  const Bounds b = bounds(l);
  if (b.lo >= 0 && b.exact()) return true;
  if (!b.index) return false;
  for (const Linear& known : assumed_) {
    const Linear rest = sum(l, known, -1);
    if (rest.is_const() && rest.constant >= 0) return true;
  }
  if (budget <= 0) return false;
  if (prove_by_parts(l, budget)) return true;
  // Replace the innermost variable by the bound that makes the form smallest; its bounds mention outer variables only.
  const Fact* inner = nullptr;
  const VarInfo* var = nullptr;
  for (const auto& [term, c] : l.terms) {
    for (const Expr& f : factors_of(term)) {
      if (f->op != Op::var) continue;
      const auto it = facts_.find(f->variable.get());
      if (it == facts_.end() || (it->second.lower.empty() && it->second.upper.empty())) continue;
      if (!inner || it->second.order > inner->order) inner = &it->second, var = it->first;
    }
  }
  if (!inner) return false;
  Linear rest{{}, l.constant}, low, high;  // rest + low * var + high * var: low's terms >= 0, high's <= 0
  for (const auto& [term, c] : l.terms) {
    std::vector<Expr> factors = factors_of(term);
    const auto at =
        std::find_if(factors.begin(), factors.end(), [&](const Expr& f) { return f->variable.get() == var; });
    if (at == factors.end()) {
      rest = sum(rest, {{{term, 1}}, 0}, c);
      continue;
    }
    factors.erase(at);
    Linear others{{}, 1};
    for (const Expr& f : factors) others = product(others, {{{f, 1}}, 0});
    if (bounds(others).lo < 0) return false;
    Linear& side = c > 0 ? low : high;
    side = sum(side, others, c);
  }
  const bool has_low = !low.terms.empty() || low.constant != 0, has_high = !high.terms.empty() || high.constant != 0;
  static const std::vector<Linear> kNone(1);
  const std::vector<Linear>& lows = has_low ? inner->lower : kNone;
  const std::vector<Linear>& highs = has_high ? inner->upper : kNone;
  const int next = (budget - 1) / static_cast<int>(std::max<size_t>(lows.size() * highs.size(), 1));
  for (const Linear& lo : lows) {
    for (const Linear& hi : highs) {
      Linear candidate = rest;
      if (has_low) candidate = sum(candidate, product(low, lo));
      if (has_high) candidate = sum(candidate, product(high, hi));
      if (prove(candidate, next)) return true;
    }
  }
  return false;
}

}  // namespace cuvil::kernel
