#include "core/kernel/copy.h"

#include <algorithm>

namespace cuvil::kernel {

Expr with_args(const Expr& e, std::vector<Expr> args) {
  ExprNode node = *e;
  node.args = std::move(args);
  return Expr(std::make_shared<const ExprNode>(std::move(node)));
}

Stmt with_bodies(const Stmt& s, const std::function<std::vector<Stmt>(const std::vector<Stmt>&)>& rewrite) {
  if (s->body.empty() && s->otherwise.empty()) return s;
  StmtNode n = *s;
  n.body = rewrite(s->body);
  n.otherwise = rewrite(s->otherwise);
  const bool same = n.body == s->body && n.otherwise == s->otherwise;
  return same ? s : std::make_shared<const StmtNode>(std::move(n));
}

bool allocates_scratch(const std::vector<Stmt>& statements) {
  return std::any_of(statements.begin(), statements.end(),
                     [](const Stmt& s) { return s->kind == StmtKind::alloc && s->buffer->space != Space::reg; });
}

Var Copier::fresh(const Var& var) {
  Var twin = make_var(var->name, var->type);
  variables_[var.get()] = Expr(twin);
  return twin;
}

Buffer Copier::mapped(const Buffer& buffer) const {
  const auto it = buffers_.find(buffer.get());
  return it == buffers_.end() ? buffer : it->second;
}

Expr Copier::copy(const Expr& e) {
  if (!e) return e;
  if (e->op == Op::const_int || e->op == Op::const_float) return e;
  if (e->op == Op::var) {
    const auto it = variables_.find(e->variable.get());
    return it == variables_.end() ? e : it->second;
  }
  if (const auto it = done_.find(e.get()); it != done_.end()) return it->second.second;
  std::vector<Expr> args;
  bool same = true;
  for (const Expr& a : e->args) {
    args.push_back(copy(a));
    same = same && args.back().get() == a.get();
  }
  Expr r = e;
  if (e->op == Op::load && mapped(e->buffer) != e->buffer) {
    ExprNode node = *e;
    node.args = std::move(args);
    node.buffer = mapped(e->buffer);
    r = Expr(std::make_shared<const ExprNode>(std::move(node)));
  } else if (!same) {
    r = with_args(e, std::move(args));
  }
  done_[e.get()] = {e, r};
  return r;
}

Stmt Copier::copy(const StmtNode& s) {
  StmtNode n = s;
  // Operands are outside the scope of what the statement defines: copy them first.
  n.begin = copy(s.begin);
  n.end = copy(s.end);
  n.value = copy(s.value);
  n.mask = copy(s.mask);
  for (Expr& i : n.indices) i = copy(i);
  if (s.variable) n.variable = fresh(s.variable);
  if (s.kind == StmtKind::alloc) {
    n.buffer = std::make_shared<const BufferInfo>(*s.buffer);
    buffers_[s.buffer.get()] = n.buffer;
  } else if (s.buffer) {
    n.buffer = mapped(s.buffer);
  }
  n.body = copy(s.body);
  n.otherwise = copy(s.otherwise);
  return std::make_shared<const StmtNode>(std::move(n));
}

std::vector<Stmt> Copier::copy(const std::vector<Stmt>& body) {
  std::vector<Stmt> r;
  r.reserve(body.size());
  for (const Stmt& s : body) r.push_back(copy(*s));
  return r;
}

}  // namespace cuvil::kernel
