#include "core/base/dim.h"

#include <algorithm>

#include "core/base/dim_impl.h"
#include "core/base/error.h"

namespace cuvil {
namespace {

// Far above what models need; keeps hostile expressions from taking time or memory.
constexpr size_t kMaxTerms = 1024;
constexpr int64_t kMaxWeight = 1 << 14;

int64_t clamp(__int128 v) {
  return v < DimRange::kMin ? DimRange::kMin : v > DimRange::kMax ? DimRange::kMax : static_cast<int64_t>(v);
}

DimRange add(DimRange a, DimRange b) {
  const bool no_lo = a.lo == DimRange::kMin || b.lo == DimRange::kMin;
  const bool no_hi = a.hi == DimRange::kMax || b.hi == DimRange::kMax;
  return {no_lo ? DimRange::kMin : clamp(static_cast<__int128>(a.lo) + b.lo),
          no_hi ? DimRange::kMax : clamp(static_cast<__int128>(a.hi) + b.hi)};
}

// Infinity as 2^63: its products are clamped to infinity again, and 0 * infinity is 0, as it should be for bounds.
DimRange multiply(DimRange a, DimRange b) {
  const auto wide = [](int64_t v) { return v == DimRange::kMax ? __int128{1} << 63 : __int128{v}; };
  const __int128 p[] = {wide(a.lo) * wide(b.lo), wide(a.lo) * wide(b.hi), wide(a.hi) * wide(b.lo),
                        wide(a.hi) * wide(b.hi)};
  return {clamp(*std::min_element(p, p + 4)), clamp(*std::max_element(p, p + 4))};
}

int compare_factors(const DimTerm& a, const DimTerm& b) {
  if (a.factors.size() != b.factors.size()) return a.factors.size() > b.factors.size() ? -1 : 1;
  for (size_t i = 0; i < a.factors.size(); ++i)
    if (const int c = compare(*a.factors[i], *b.factors[i])) return c;
  return 0;
}

std::string quoted(const Dim& a, std::string_view op, const Dim& b) {
  return "(" + a.str() + ")" + std::string(op) + "(" + b.str() + ")";
}

struct Overflow {};

DimTerm multiply(const DimTerm& a, const DimTerm& b) {
  DimTerm r;
  if (__builtin_mul_overflow(a.coefficient, b.coefficient, &r.coefficient)) throw Overflow{};
  r.factors.resize(a.factors.size() + b.factors.size());
  std::merge(a.factors.begin(), a.factors.end(), b.factors.begin(), b.factors.end(), r.factors.begin(),
             [](const DimAtomPtr& x, const DimAtomPtr& y) { return compare(*x, *y) < 0; });
  return r;
}

}  // namespace

int compare(const DimAtom& a, const DimAtom& b) {
  if (&a == &b) return 0;
  if (a.kind != b.kind) return a.kind < b.kind ? -1 : 1;
  if (const int c = a.name.compare(b.name)) return c < 0 ? -1 : 1;
  if (a.operands.size() != b.operands.size()) return a.operands.size() < b.operands.size() ? -1 : 1;
  for (size_t i = 0; i < a.operands.size(); ++i)
    if (const int c = DimImpl::compare(a.operands[i], b.operands[i])) return c;
  return 0;
}

int DimImpl::compare(const Dim& a, const Dim& b) {
  if (a.node_ == b.node_) return 0;
  const auto &x = terms(a), &y = terms(b);
  for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
    if (const int c = compare_factors(x[i], y[i])) return c;
    if (x[i].coefficient != y[i].coefficient) return x[i].coefficient < y[i].coefficient ? -1 : 1;
  }
  return x.size() == y.size() ? 0 : x.size() < y.size() ? -1 : 1;
}

Dim DimImpl::make(std::vector<DimTerm> terms) {
  std::sort(terms.begin(), terms.end(), [](const DimTerm& a, const DimTerm& b) { return compare_factors(a, b) < 0; });
  auto node = std::make_shared<Dim::Node>();
  for (DimTerm& t : terms) {
    auto& merged = node->terms;
    if (!merged.empty() && compare_factors(merged.back(), t) == 0) {
      if (__builtin_add_overflow(merged.back().coefficient, t.coefficient, &merged.back().coefficient))
        throw Overflow{};
    } else {
      merged.push_back(std::move(t));
    }
    if (merged.back().coefficient == 0) merged.pop_back();
  }
  node->range = {0, 0};
  for (const DimTerm& t : node->terms) {
    DimRange r{t.coefficient, t.coefficient};
    ++node->weight;
    for (const DimAtomPtr& f : t.factors) {
      r = multiply(r, f->range);
      node->weight += f->weight;
    }
    node->range = add(node->range, r);
  }
  if (node->terms.size() > kMaxTerms || node->weight > kMaxWeight)
    throw_shape_error("a size expression has grown beyond " + std::to_string(kMaxTerms) +
                      " terms; give some of its symbols fixed values");
  return Dim(std::shared_ptr<const Dim::Node>(std::move(node)));
}

Dim DimImpl::from_atom(DimAtom atom) {
  for (const Dim& d : atom.operands) atom.weight += weight(d);
  return make({{1, {std::make_shared<const DimAtom>(std::move(atom))}}});
}

Dim::Dim(int64_t value) {
  auto node = std::make_shared<Node>();
  if (value) node->terms.push_back({value, {}});
  node->range = {value, value};
  node_ = std::move(node);
}

Dim Dim::symbol(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  bool valid = !name.empty() && letter(name[0]);
  for (char c : name) valid = valid && (letter(c) || (c >= '0' && c <= '9'));
  if (!valid) throw_shape_error("'" + std::string(name) + "' is not a name of a dimension: [A-Za-z_][A-Za-z0-9_]*");
  return DimImpl::from_atom({Kind::symbol, std::string(name), {}, {0, DimRange::kMax}});
}

bool Dim::is_const() const { return as_const().has_value(); }

std::optional<int64_t> Dim::as_const() const {
  if (node_->terms.empty()) return 0;
  if (node_->terms.size() == 1 && node_->terms[0].factors.empty()) return node_->terms[0].coefficient;
  return std::nullopt;
}

int64_t Dim::value() const {
  const auto v = as_const();
  CUVIL_CHECK(v.has_value(), "size is not a constant: " + str());
  return *v;
}

std::optional<int64_t> Dim::lower_bound() const {
  if (node_->range.lo == DimRange::kMin) return std::nullopt;
  return node_->range.lo;
}

std::optional<int64_t> Dim::upper_bound() const {
  if (node_->range.hi == DimRange::kMax) return std::nullopt;
  return node_->range.hi;
}

Dim operator+(const Dim& a, const Dim& b) {
  std::vector<DimTerm> terms = DimImpl::terms(a);
  terms.insert(terms.end(), DimImpl::terms(b).begin(), DimImpl::terms(b).end());
  try {
    return DimImpl::make(std::move(terms));
  } catch (Overflow) {
    throw_shape_error("size does not fit 64 bits: " + quoted(a, "+", b));
  }
}

Dim operator-(const Dim& a, const Dim& b) {
  std::vector<DimTerm> terms = DimImpl::terms(a);
  try {
    for (const DimTerm& t : DimImpl::terms(b)) terms.push_back(multiply(DimTerm{-1, {}}, t));
    return DimImpl::make(std::move(terms));
  } catch (Overflow) {
    throw_shape_error("size does not fit 64 bits: " + quoted(a, "-", b));
  }
}

Dim operator*(const Dim& a, const Dim& b) {
  if (DimImpl::terms(a).size() * DimImpl::terms(b).size() > kMaxTerms ||
      DimImpl::weight(a) * DimImpl::weight(b) > 64 * kMaxWeight)
    throw_shape_error("a size expression has grown too large: a product of sums of " +
                      std::to_string(DimImpl::terms(a).size()) + " and " + std::to_string(DimImpl::terms(b).size()) +
                      " terms; give some of its symbols fixed values");
  std::vector<DimTerm> terms;
  try {
    for (const DimTerm& x : DimImpl::terms(a))
      for (const DimTerm& y : DimImpl::terms(b)) terms.push_back(multiply(x, y));
    return DimImpl::make(std::move(terms));
  } catch (Overflow) {
    throw_shape_error("size does not fit 64 bits: " + quoted(a, "*", b));
  }
}

bool operator==(const Dim& a, const Dim& b) { return DimImpl::compare(a, b) == 0; }
bool operator<(const Dim& a, const Dim& b) { return DimImpl::compare(a, b) < 0; }

Dim::View Dim::view() const {
  const auto& terms = node_->terms;
  if (const auto v = as_const()) return {Kind::constant, *v, {}, {}};
  View view{Kind::add, 0, {}, {}};
  if (terms.size() > 1) {
    for (const DimTerm& t : terms) view.operands.push_back(DimImpl::make({t}));
    return view;
  }
  const DimTerm& t = terms[0];
  if (t.coefficient == 1 && t.factors.size() == 1) {
    const DimAtom& atom = *t.factors[0];
    return {atom.kind, 0, atom.name, atom.operands};
  }
  view.kind = Kind::mul;
  if (t.coefficient != 1) view.operands.push_back(t.coefficient);
  for (const DimAtomPtr& f : t.factors) view.operands.push_back(DimImpl::make({{1, {f}}}));
  return view;
}

Dim num_elements(const Shape& shape) {
  Dim n = 1;
  for (const Dim& d : shape) n = n * d;
  return n;
}

bool is_static(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_const(); });
}

}  // namespace cuvil
