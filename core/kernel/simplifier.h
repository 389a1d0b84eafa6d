// Rules of the simplifier over expressions; private to simplify*.cpp.
#pragma once

#include <unordered_map>
#include <vector>

#include "core/kernel/index_facts.h"
#include "core/kernel/ir.h"

namespace cuvil::kernel {

class ExprSimplifier {
  Interner intern_;

 public:
  IndexFacts facts{intern_};

  /// The simplified, interned form of any expression.
  Expr simplify(const Expr& e);
  /// From now on `var` is replaced by `by`, which is simplified.
  void replace(const Var& var, const Expr& by) { replaced_[var.get()] = by; }

  /// Simplification under a condition; calls nest.
  void push(const Expr& condition, bool value);
  void pop();

 private:
  std::unordered_map<const VarInfo*, Expr> replaced_;
  /// Results per condition in force; keys are kept alive by the first member.
  std::vector<std::unordered_map<const ExprNode*, std::pair<Expr, Expr>>> done_{1};

  using Args = std::vector<Expr>;

  /// A node with simplified operands and the same operator as `like`, simplified.
  Expr apply(const Expr& like, Args args);
  /// The same for operators without attributes.
  Expr apply(Op op, Type type, Args args);
  Expr raw(Op op, Type type, Args args);
  Expr index(int64_t value) { return intern_(const_int(kIndex, value)); }

  // One function per file or group of rules; a null result means that no rule fits. Operands are simplified.
  Expr constants(Op op, Type type, const Args& args);  // simplify_rules.cpp
  Expr identities(Op op, Type type, const Args& args);
  Expr booleans(Op op, Type type, const Args& args);
  Expr index_rules(Op op, const Args& args);  // simplify_index.cpp
  Expr floordiv(const Expr& a, const Expr& b);
  Expr floormod(const Expr& a, const Expr& b);
  Expr compare(Op op, const Linear& difference);
  Expr extremum(Op op, const Expr& a, const Expr& b);
  Expr vector_rules(Op op, Type type, const Args& args);  // simplify_vector.cpp
  Expr ramp_rules(Op op, Type type, const Args& args);
  Expr memory(const Expr& like, Args args);

  /// Parts of a division by `divisor`: numerator = quotient * divisor + rest.
  bool split(const Linear& numerator, const Expr& divisor, Linear& quotient, Linear& rest);
};

}  // namespace cuvil::kernel
