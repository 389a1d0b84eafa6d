// Text, substitution and evaluation of Dims: what works on the canonical tree alone.
#include <algorithm>
#include <cctype>
#include <numeric>
#include <set>

#include "core/base/dim.h"
#include "core/base/dim_impl.h"
#include "core/base/error.h"

namespace cuvil {
namespace {

using Kind = Dim::Kind;

std::string_view function_name(Kind kind) {
  switch (kind) {
    case Kind::floordiv:
      return "floordiv";
    case Kind::mod:
      return "mod";
    case Kind::min:
      return "min";
    default:
      return "max";
  }
}

std::string atom_text(const DimAtom& atom) {
  if (atom.kind == Kind::symbol) return atom.name;
  std::vector<Dim> operands = atom.operands;
  std::string name(function_name(atom.kind));
  if (atom.kind == Kind::floordiv) {
    // floordiv(x + d-1, d) is how ceildiv(x, d) is stored.
    const auto& terms = DimImpl::terms(operands[0]);
    const auto d = operands[1].as_const();
    if (d && *d > 1 && terms.back().factors.empty() && terms.back().coefficient == *d - 1) {
      name = "ceildiv";
      operands[0] = operands[0] - Dim(*d - 1);
    }
  }
  std::string s = name + "(";
  for (size_t i = 0; i < operands.size(); ++i) s += (i ? ", " : "") + operands[i].str();
  return s + ")";
}

// Recursive descent over what str() writes: sums of products of numbers, names, calls and parenthesised sums.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::optional<Dim> whole() {
    auto d = sum(0);
    skip();
    if (at_ != text_.size()) return std::nullopt;
    return d;
  }

 private:
  static constexpr int kMaxDepth = 64;
  std::string_view text_;
  size_t at_ = 0;

  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool at_digit() {
    skip();
    return at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9';
  }

  std::optional<Dim> sum(int depth) {
    if (depth > kMaxDepth) return std::nullopt;
    auto total = product(accept('-'), depth);
    while (total) {
      const bool plus = accept('+');
      if (!plus && !accept('-')) break;
      const auto next = product(!plus, depth);
      if (!next) return std::nullopt;
      total = *total + *next;
    }
    return total;
  }

  // The sign belongs to the first number, so that the smallest int64 can be read.
  std::optional<Dim> product(bool negative, int depth) {
    std::optional<Dim> total;
    if (at_digit()) {
      total = number(negative);
    } else {
      total = primary(depth);
      if (total && negative) total = Dim(-1) * *total;
    }
    while (total && accept('*')) {
      const auto next = at_digit() ? number(false) : primary(depth);
      if (!next) return std::nullopt;
      total = *total * *next;
    }
    return total;
  }

  std::optional<Dim> number(bool negative) {
    __int128 v = 0;
    while (at_digit() && v < (__int128{1} << 70)) v = v * 10 + (text_[at_++] - '0');
    if (negative) v = -v;
    if (v < DimRange::kMin || v > DimRange::kMax) return std::nullopt;
    return Dim(static_cast<int64_t>(v));
  }

  std::optional<Dim> primary(int depth) {
    if (accept('(')) {
      auto d = sum(depth + 1);
      if (!d || !accept(')')) return std::nullopt;
      return d;
    }
    skip();
    const size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    const std::string_view name = text_.substr(start, at_ - start);
    if (name.empty()) return std::nullopt;
    if (!accept('(')) return Dim::symbol(name);
    std::vector<Dim> operands;
    do {
      auto d = sum(depth + 1);
      if (!d) return std::nullopt;
      operands.push_back(std::move(*d));
    } while (accept(','));
    if (!accept(')') || operands.size() < 2) return std::nullopt;
    if (name == "min" || name == "max") {
      Dim r = operands[0];
      for (size_t i = 1; i < operands.size(); ++i) r = name == "min" ? min(r, operands[i]) : max(r, operands[i]);
      return r;
    }
    if (operands.size() != 2) return std::nullopt;
    if (name == "floordiv") return floordiv(operands[0], operands[1]);
    if (name == "ceildiv") return ceildiv(operands[0], operands[1]);
    if (name == "mod") return mod(operands[0], operands[1]);
    return std::nullopt;
  }
};

void collect(const Dim& d, std::set<std::string>& names) {
  for (const DimTerm& t : DimImpl::terms(d)) {
    for (const DimAtomPtr& f : t.factors) {
      if (f->kind == Kind::symbol) names.insert(f->name);
      for (const Dim& o : f->operands) collect(o, names);
    }
  }
}

std::optional<int64_t> evaluate_atom(const DimAtom& atom, const std::map<std::string, int64_t>& values) {
  if (atom.kind == Kind::symbol) {
    const auto it = values.find(atom.name);
    if (it == values.end()) return std::nullopt;
    return it->second;
  }
  std::optional<int64_t> r;
  for (const Dim& o : atom.operands) {
    const auto v = o.evaluate(values);
    if (!v) return std::nullopt;
    if (!r) {
      r = v;
    } else if (atom.kind == Kind::min) {
      r = std::min(*r, *v);
    } else if (atom.kind == Kind::max) {
      r = std::max(*r, *v);
    } else {
      if (*v <= 0) return std::nullopt;
      const int64_t q = floor_divide(*r, *v);
      r = atom.kind == Kind::floordiv ? q : *r - q * *v;
    }
  }
  return r;
}

/// A divisor of n that is known to divide d.
int64_t known_divisor(const Dim& d, int64_t n);

int64_t known_divisor(const DimAtom& atom, int64_t n) {
  if (atom.kind == Kind::symbol || atom.kind == Kind::floordiv) return 1;
  for (const Dim& o : atom.operands) n = known_divisor(o, n);
  return n;
}

int64_t known_divisor(const Dim& d, int64_t n) {
  int64_t all = n;
  for (const DimTerm& t : DimImpl::terms(d)) {
    const int64_t c = t.coefficient % n;
    int64_t rest = n / std::gcd(n, c);
    for (const DimAtomPtr& f : t.factors) rest /= known_divisor(*f, rest);
    all = std::gcd(all, n / rest);
  }
  return all;
}

}  // namespace

std::string Dim::str() const {
  std::string s;
  for (const DimTerm& t : node_->terms) {
    std::string c = std::to_string(t.coefficient);
    const bool negative = c[0] == '-';
    if (negative) c.erase(0, 1);
    if (negative || !s.empty()) s += negative ? "-" : "+";
    if (t.factors.empty() || c != "1") s += c;
    for (size_t i = 0; i < t.factors.size(); ++i) s += (i || c != "1" ? "*" : "") + atom_text(*t.factors[i]);
  }
  return s.empty() ? "0" : s;
}

std::optional<Dim> Dim::parse(std::string_view text) {
  constexpr size_t kMaxLength = 1 << 18;  // what str() writes of the largest expressions must be readable
  if (text.size() > kMaxLength) return std::nullopt;
  try {
    return Parser(text).whole();
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::vector<std::string> Dim::symbols() const {
  std::set<std::string> names;
  collect(*this, names);
  return {names.begin(), names.end()};
}

Dim Dim::substitute(const std::map<std::string, Dim>& values) const {
  Dim total = 0;
  for (const DimTerm& t : node_->terms) {
    Dim product = t.coefficient;
    for (const DimAtomPtr& f : t.factors) {
      Dim atom;
      if (f->kind == Kind::symbol) {
        const auto it = values.find(f->name);
        atom = it == values.end() ? Dim::symbol(f->name) : it->second;
      } else {
        atom = f->operands[0].substitute(values);
        for (size_t i = 1; i < f->operands.size(); ++i) {
          const Dim o = f->operands[i].substitute(values);
          switch (f->kind) {
            case Kind::floordiv:
              atom = floordiv(atom, o);
              break;
            case Kind::mod:
              atom = mod(atom, o);
              break;
            case Kind::min:
              atom = min(atom, o);
              break;
            default:
              atom = max(atom, o);
              break;
          }
        }
      }
      product = product * atom;
    }
    total = total + product;
  }
  return total;
}

std::optional<int64_t> Dim::evaluate(const std::map<std::string, int64_t>& values) const {
  __int128 total = 0;
  for (const DimTerm& t : node_->terms) {
    __int128 product = t.coefficient;
    for (const DimAtomPtr& f : t.factors) {
      const auto v = evaluate_atom(*f, values);
      if (!v || __builtin_mul_overflow(product, *v, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(total, product, &total)) return std::nullopt;
  }
  if (total < DimRange::kMin || total > DimRange::kMax) return std::nullopt;
  return static_cast<int64_t>(total);
}

bool Dim::divisible_by(int64_t n) const {
  CUVIL_CHECK(n > 0, "divisible_by takes a positive number");
  return known_divisor(*this, n) == n;
}

std::string to_string(const Shape& shape) {
  std::string s = "[";
  for (size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + shape[i].str();
  return s + "]";
}

}  // namespace cuvil
