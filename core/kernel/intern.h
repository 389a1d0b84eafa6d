// One handle per structurally equal expression; private to the simplifier.
#pragma once

#include <unordered_map>

#include "core/kernel/ir.h"

namespace cuvil::kernel {

/// Makes structural equality the equality of handles, and numbers expressions in the order in which they come: an order
/// that does not depend on addresses, so that output sorted by it is deterministic.
class Interner {
 public:
  /// The handle that stands for `e`, whose operands are interned already.
  Expr operator()(const Expr& e);
  int id(const Expr& e) const { return ids_.at(e.get()); }
  bool contains(const Expr& e) const { return ids_.count(e.get()) != 0; }

 private:
  struct Hash {
    size_t operator()(const Expr& e) const;
  };
  struct Same {
    bool operator()(const Expr& a, const Expr& b) const;
  };
  std::unordered_map<Expr, int, Hash, Same> known_;
  std::unordered_map<const ExprNode*, int> ids_;
};

}  // namespace cuvil::kernel
