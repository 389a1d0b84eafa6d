// What is known about integer expressions: linear forms, bounds, and proofs of "never negative". Private to the
// simplifier.
//
// Assumption: index arithmetic, that is i64 arithmetic over loop variables, task numbers, dimensions and constants,
// does not overflow; sizes are far below 2^63. Nothing is assumed about i64 values that come from memory.
#pragma once

#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/kernel/intern.h"
#include "core/kernel/ir.h"

namespace cuvil::kernel {

/// sum of coefficient * term + constant, in wrapping int64. Terms are interned, not constant, not sums, in order of id.
struct Linear {
  std::vector<std::pair<Expr, int64_t>> terms;
  int64_t constant = 0;
  bool is_const() const { return terms.empty(); }
};

struct Bounds {
  static constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  int64_t lo = kMin;   ///< kMin: unbounded
  int64_t hi = kMax;   ///< kMax: unbounded
  bool index = false;  ///< index arithmetic as above
  bool finite() const { return lo != kMin && hi != kMax; }
  /// The value in exact arithmetic is the value in wrapping arithmetic.
  bool exact() const { return index || finite(); }
};

class IndexFacts {
 public:
  explicit IndexFacts(Interner& intern) : intern_(intern) {}

  // ---- variables; all Exprs interned
  /// begin <= var < end
  void bind_range(const Var& var, const Expr& begin, const Expr& end, int64_t step);
  void bind_at_least(const Var& var, int64_t lo);
  void bind_value(const Var& var, const Expr& value);
  /// Assumes `condition` until pop(). Conjunctions of comparisons of indices are understood.
  void push(const Expr& condition, bool value);
  void pop();

  // ---- linear forms of interned i64 scalars
  /// Above this many terms a sum is kept as it is written, so that time stays linear in the size of an expression.
  static constexpr size_t kMaxTerms = 16;
  void keep_as_term(const Expr& e) { opaque_.insert(e.get()); }
  Linear linear(const Expr& e) const;
  Expr expression(Linear l);
  Linear sum(const Linear& a, const Linear& b, int64_t scale_b = 1) const;
  Linear scaled(const Linear& a, int64_t by) const;
  /// Product; null terms never occur. Distributes while that stays small.
  Linear product(const Linear& a, const Linear& b);

  Bounds bounds(const Expr& e);
  Bounds bounds(const Linear& l);
  /// True if l >= 0 for all values the variables can take; false if not known.
  bool never_negative(const Linear& l) { return prove(l, 24); }

 private:
  struct Fact {
    int order = 0;                     ///< inner variables have higher numbers
    std::vector<Linear> lower, upper;  ///< each bounds the variable
    Bounds bounds;
  };
  Interner& intern_;
  std::unordered_map<const VarInfo*, Fact> facts_;
  std::unordered_map<const ExprNode*, Bounds> bounds_;
  std::unordered_set<const ExprNode*> opaque_;
  std::vector<Linear> assumed_;  ///< never negative here
  std::vector<size_t> marks_;

  Expr raw(Op op, const Expr& a, const Expr& b) const;
  Expr multiply_terms(const Expr& a, const Expr& b) const;
  Bounds compute_bounds(const Expr& e);
  bool prove(const Linear& l, int budget);
  bool prove_by_parts(const Linear& l, int budget);
  void assume(const Expr& condition, bool value);
  void alternatives(const Expr& e, Op op, int64_t offset, std::vector<Linear>& out) const;
};

/// The factors of a product of terms.
std::vector<Expr> factors_of(const Expr& term);

}  // namespace cuvil::kernel
