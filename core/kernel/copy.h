// Copying Kernel IR with replacements; private to the transforms.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "core/kernel/ir.h"

namespace cuvil::kernel {

/// `e` with other operands, of the same types as before; nothing is folded.
Expr with_args(const Expr& e, std::vector<Expr> args);

/// `s` with the statements in it rewritten; `s` itself if that changes nothing.
Stmt with_bodies(const Stmt& s, const std::function<std::vector<Stmt>(const std::vector<Stmt>&)>& rewrite);

/// Whether one of these statements (not of those in them) allocates memory that ends with the body: not reg.
bool allocates_scratch(const std::vector<Stmt>& statements);

/// Copies statements and expressions. Every variable and buffer that the copied statements define gets a fresh twin;
/// others are kept unless replaced. Shared subexpressions stay shared. Use one Copier per copy of a body.
class Copier {
 public:
  void replace(const Var& var, Expr by) { variables_[var.get()] = std::move(by); }
  Expr copy(const Expr& e);
  std::vector<Stmt> copy(const std::vector<Stmt>& body);

 private:
  std::unordered_map<const VarInfo*, Expr> variables_;
  std::unordered_map<const BufferInfo*, Buffer> buffers_;
  std::unordered_map<const ExprNode*, std::pair<Expr, Expr>> done_;  ///< from (kept alive) and to

  Var fresh(const Var& var);
  Buffer mapped(const Buffer& buffer) const;
  Stmt copy(const StmtNode& s);
};

}  // namespace cuvil::kernel
