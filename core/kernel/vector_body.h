// The body of one vector loop in explicit vectors; private to vectorize.cpp.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/kernel/ir.h"

namespace cuvil::kernel {

/// A scalar of a reg buffer that every iteration updates as acc = acc OP x: a vector of partial results during the
/// loop.
struct Reduction {
  Buffer buffer;              ///< the scalar's
  std::vector<Expr> indices;  ///< constants
  Op op;                      ///< add, min or max
  Buffer partial;             ///< reg, one vector
};

/// Writes a body for `lanes` iterations at once, starting with that of `first`. Throws nothing: what it cannot do, it
/// says, and the loop stays serial.
class VectorBody {
 public:
  /// `mask`: lanes that run, at least one; null = all.
  VectorBody(const Var& loop_variable, Expr first, int64_t step, int lanes, Expr mask,
             const std::vector<Reduction>& reductions);

  /// Appends the statements; false if the body cannot be vectorised.
  bool emit(const std::vector<Stmt>& body, std::vector<Stmt>& out);

  /// The load in an update acc = acc OP x of a reduction, and OP; nullopt if the store is none.
  static std::optional<Op> update_of(const StmtNode& store, const ExprNode** load);

 private:
  int lanes_;
  Expr mask_;               ///< of the statement at hand
  bool divergent_ = false;  ///< no lane at all may run
  bool failed_ = false;
  const std::vector<Reduction>& reductions_;
  std::unordered_map<const VarInfo*, Expr> forms_;  ///< scalar, ramp or vector
  std::unordered_map<const ExprNode*, std::pair<Expr, Expr>> done_;
  std::vector<Stmt>* out_ = nullptr;

  Expr vector(const Expr& e);
  Expr compute(const Expr& e);
  Expr arithmetic(const Expr& e, std::vector<Expr> args);
  Expr load_form(const Expr& e, std::vector<Expr> args);
  Expr combined_mask(const Expr& own) const;
  const Reduction* reduction(const Buffer& buffer, const std::vector<Expr>& indices) const;

  void statement(const StmtNode& s);
  void store(const StmtNode& s);
  void scatter(const StmtNode& s, std::vector<Expr> indices, Expr value, const Expr& mask);
  void branch(const StmtNode& s);
  Expr named(const std::string& name, const Expr& value);
  void add(StmtNode n) { out_->push_back(std::make_shared<const StmtNode>(std::move(n))); }
};

}  // namespace cuvil::kernel
