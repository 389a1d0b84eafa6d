// Traversals of Kernel IR: rewriting bottom-up, substitution, visiting, structural equality.
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "core/base/error.h"
#include "core/kernel/ir.h"

namespace cuvil::kernel {
namespace {

/// Expressions are shared trees: each node is rewritten once.
class Rewriter {
 public:
  explicit Rewriter(const std::function<Expr(const Expr&)>& f) : f_(f) {}

  Expr expr(const Expr& e) {
    if (!e) return e;
    auto found = done_.find(e.get());
    if (found != done_.end()) return found->second.second;
    Expr rebuilt = e;
    bool changed = false;
    std::vector<Expr> args;
    args.reserve(e->args.size());
    for (const Expr& a : e->args) {
      args.push_back(expr(a));
      changed = changed || args.back().get() != a.get();
    }
    if (changed) {
      ExprNode n = *e;
      n.args = std::move(args);
      rebuilt = Expr(std::make_shared<const ExprNode>(std::move(n)));
    }
    Expr result = f_(rebuilt);
    done_.emplace(e.get(), std::pair(e, result));  // keeps e alive: its address is the key
    return result;
  }

  std::vector<Stmt> body(const std::vector<Stmt>& statements) {
    std::vector<Stmt> out;
    out.reserve(statements.size());
    for (const Stmt& s : statements) out.push_back(stmt(s));
    return out;
  }

  Stmt stmt(const Stmt& s) {
    StmtNode n = *s;
    n.body = body(s->body);
    n.otherwise = body(s->otherwise);
    n.begin = expr(s->begin);
    n.end = expr(s->end);
    n.value = expr(s->value);
    n.mask = expr(s->mask);
    for (Expr& i : n.indices) i = expr(i);
    const bool same = n.body == s->body && n.otherwise == s->otherwise && n.begin.get() == s->begin.get() &&
                      n.end.get() == s->end.get() && n.value.get() == s->value.get() && n.mask.get() == s->mask.get() &&
                      same_handles(n.indices, s->indices);
    return same ? s : std::make_shared<const StmtNode>(std::move(n));
  }

 private:
  static bool same_handles(const std::vector<Expr>& a, const std::vector<Expr>& b) {
    for (size_t i = 0; i < a.size(); ++i)
      if (a[i].get() != b[i].get()) return false;
    return true;
  }

  const std::function<Expr(const Expr&)>& f_;
  std::unordered_map<const ExprNode*, std::pair<Expr, Expr>> done_;  // asked, never listed
};

/// Values share operands: each node is seen once in a statement, or the paths to it could be without number.
class Visitor {
 public:
  Visitor(const std::function<void(const StmtNode&)>& on_stmt, const std::function<void(const ExprNode&)>& on_expr)
      : on_stmt_(on_stmt), on_expr_(on_expr) {}

  void body(const std::vector<Stmt>& statements) {
    for (const Stmt& s : statements) {
      on_stmt_(*s);
      seen_.clear();
      for (const Expr* e : {&s->begin, &s->end, &s->value, &s->mask}) expr(*e);
      for (const Expr& i : s->indices) expr(i);
      body(s->body);
      body(s->otherwise);
    }
  }

 private:
  void expr(const Expr& e) {
    if (!e || (!e->args.empty() && !seen_.insert(e.get()).second)) return;
    for (const Expr& a : e->args) expr(a);
    on_expr_(*e);
  }

  const std::function<void(const StmtNode&)>& on_stmt_;
  const std::function<void(const ExprNode&)>& on_expr_;
  std::unordered_set<const ExprNode*> seen_;  // asked, never listed
};

}  // namespace

Expr rewrite(const Expr& e, const std::function<Expr(const Expr&)>& f) { return Rewriter(f).expr(e); }

std::vector<Stmt> rewrite(const std::vector<Stmt>& body, const std::function<Expr(const Expr&)>& f) {
  return Rewriter(f).body(body);
}

Expr substitute(const Expr& e, std::span<const std::pair<Var, Expr>> values) {
  return rewrite(e, [&](const Expr& x) {
    if (x->op == Op::var)
      for (const auto& [variable, value] : values)
        if (x->variable == variable) return value;
    return x;
  });
}

std::vector<Stmt> substitute(const std::vector<Stmt>& body, std::span<const std::pair<Var, Expr>> values) {
  return rewrite(body, [&](const Expr& x) {
    if (x->op == Op::var)
      for (const auto& [variable, value] : values)
        if (x->variable == variable) return value;
    return x;
  });
}

void visit(const std::vector<Stmt>& body, const std::function<void(const StmtNode&)>& on_stmt,
           const std::function<void(const ExprNode&)>& on_expr) {
  Visitor(on_stmt, on_expr).body(body);
}

bool equal(const Expr& a, const Expr& b) {
  if (a.get() == b.get()) return true;
  if (!a || !b || a->op != b->op || !(a->type == b->type) || a->args.size() != b->args.size()) return false;
  const bool same_float =
      a->float_value == b->float_value || (a->float_value != a->float_value && b->float_value != b->float_value);
  if (a->int_value != b->int_value || !same_float || std::signbit(a->float_value) != std::signbit(b->float_value) ||
      a->variable != b->variable || a->buffer != b->buffer || a->has_mask != b->has_mask || a->lanes != b->lanes)
    return false;
  for (size_t i = 0; i < a->args.size(); ++i)
    if (!equal(a->args[i], b->args[i])) return false;
  return true;
}

Expr scratch_bytes(const Kernel& kernel) {
  Expr largest(int64_t{0});
  for (const Phase& p : kernel.phases) {
    Expr total(int64_t{0});
    visit(
        p.body,
        [&](const StmtNode& s) {
          if (s.kind != StmtKind::alloc || (s.buffer->space != Space::scratch && s.buffer->space != Space::shared))
            return;
          Expr bytes(int64_t{size_of(s.buffer->type.dtype)} * s.buffer->type.lanes);
          for (const Expr& extent : s.buffer->shape) bytes = bytes * extent;
          total = total + ceildiv(bytes, 64) * 64;
        },
        [](const ExprNode&) {});
    largest = max(largest, total);
  }
  return largest;
}

}  // namespace cuvil::kernel
