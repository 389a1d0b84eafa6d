// Statements: known branches, empty loops, loops of one iteration, lets that name nothing new or are not used. The
// rules of expressions are in simplify_rules.cpp, simplify_index.cpp and simplify_vector.cpp.
#include <unordered_set>

#include "core/kernel/copy.h"
#include "core/kernel/scalar.h"
#include "core/kernel/simplifier.h"
#include "core/kernel/transform.h"

namespace cuvil::kernel {
namespace {

class Simplifier {
 public:
  Kernel run(const Kernel& kernel) {
    Kernel r = kernel;
    // Facts are kept per variable: one that is bound twice, in sibling scopes, would have those of both.
    if (binds_twice(kernel))
      for (Phase& p : r.phases) p.body = Copier().copy(p.body);
    for (const Var& d : r.dims) exprs_.facts.bind_at_least(d, 0);
    for (Phase& p : r.phases) {
      p.tasks = exprs_.simplify(p.tasks);
      exprs_.facts.bind_range(p.task, exprs_.simplify(Expr(int64_t{0})), p.tasks, 1);
      std::vector<Stmt> out;
      body(p.body, out);
      used_.clear();
      seen_.clear();
      p.body = prune(out);
    }
    return r;
  }

 private:
  ExprSimplifier exprs_;
  std::unordered_set<const VarInfo*> used_;
  std::unordered_set<const ExprNode*> seen_;

  static bool binds_twice(const Kernel& kernel) {
    std::unordered_set<const void*> bound;
    bool twice = false;
    for (const Phase& p : kernel.phases) {
      visit(
          p.body,
          [&](const StmtNode& s) {
            if (s.variable) twice = !bound.insert(s.variable.get()).second || twice;
            if (s.kind == StmtKind::alloc) twice = !bound.insert(s.buffer.get()).second || twice;
          },
          [](const ExprNode&) {});
    }
    return twice;
  }

  bool never_negative(const Expr& e) {
    const Expr s = exprs_.simplify(e);
    return exprs_.facts.bounds(s).exact() && exprs_.facts.never_negative(exprs_.facts.linear(s));
  }

  void body(const std::vector<Stmt>& statements, std::vector<Stmt>& out) {
    for (const Stmt& s : statements) statement(*s, out);
  }

  std::vector<Stmt> body(const std::vector<Stmt>& statements) {
    std::vector<Stmt> out;
    body(statements, out);
    return out;
  }

  /// Variables are unique: flattening widens their scope only. Scratch memory though is free again at a body's end.
  void inline_body(const std::vector<Stmt>& statements, std::vector<Stmt>& out) {
    if (!allocates_scratch(statements)) return body(statements, out);
    StmtNode block{StmtKind::block};
    block.body = body(statements);
    out.push_back(std::make_shared<const StmtNode>(std::move(block)));
  }

  void statement(const StmtNode& s, std::vector<Stmt>& out) {
    StmtNode n = s;
    n.begin = exprs_.simplify(s.begin);
    n.end = exprs_.simplify(s.end);
    n.value = exprs_.simplify(s.value);
    n.mask = exprs_.simplify(s.mask);
    for (Expr& i : n.indices) i = exprs_.simplify(i);
    switch (s.kind) {
      case StmtKind::block:
        inline_body(s.body, out);
        return;
      case StmtKind::let:
        let(s.variable, n.value, out);
        return;
      case StmtKind::loop:
        loop(s, std::move(n), out);
        return;
      case StmtKind::branch:
        branch(s, std::move(n), out);
        return;
      case StmtKind::store:
        if (n.mask) {
          if (const auto mask = as_constant(n.mask)) {
            if (!mask->i) return;
            n.mask = {};
          }
        }
        contiguous(n);
        break;
      default:
        break;
    }
    out.push_back(std::make_shared<const StmtNode>(std::move(n)));
  }

  /// Inlines what a name does not make shorter: constants, variables, and sums of a few variables, so that an index
  /// stays one linear form.
  static bool names_nothing(const ExprSimplifier& exprs, const Expr& value) {
    const Expr& scalar = value->op == Op::broadcast ? value->args[0] : value;
    if (scalar->op == Op::var || scalar->op == Op::const_int || scalar->op == Op::const_float) return true;
    if (value.type() != kIndex) return false;
    const Linear l = exprs.facts.linear(value);
    if (l.terms.size() > 4) return false;
    for (const auto& [term, c] : l.terms)
      for (const Expr& f : factors_of(term))
        if (f->op != Op::var) return false;
    return true;
  }

  void let(const Var& var, const Expr& value, std::vector<Stmt>& out) {
    if (names_nothing(exprs_, value)) {
      exprs_.replace(var, value);
      return;
    }
    exprs_.facts.bind_value(var, value);
    StmtNode n{StmtKind::let};
    n.variable = var;
    n.value = value;
    out.push_back(std::make_shared<const StmtNode>(std::move(n)));
  }

  void loop(const StmtNode& s, StmtNode n, std::vector<Stmt>& out) {
    if (never_negative(n.begin - n.end)) return;  // empty
    const bool gpu =
        s.loop == LoopKind::gpu_thread_x || s.loop == LoopKind::gpu_thread_y || s.loop == LoopKind::gpu_thread_z;
    if (!gpu && never_negative(n.end - n.begin - 1) && never_negative(n.begin + s.step - n.end)) {
      let(s.variable, n.begin, out);
      inline_body(s.body, out);
      return;
    }
    exprs_.facts.bind_range(s.variable, n.begin, n.end, s.step);
    n.body = body(s.body);
    out.push_back(std::make_shared<const StmtNode>(std::move(n)));
  }

  void branch(const StmtNode& s, StmtNode n, std::vector<Stmt>& out) {
    if (const auto c = as_constant(n.value)) {
      inline_body(c->i ? s.body : s.otherwise, out);
      return;
    }
    exprs_.push(n.value, true);
    n.body = body(s.body);
    exprs_.pop();
    exprs_.push(n.value, false);
    n.otherwise = body(s.otherwise);
    exprs_.pop();
    out.push_back(std::make_shared<const StmtNode>(std::move(n)));
  }

  /// A scatter to consecutive elements of the last dimension is a contiguous store.
  static void contiguous(StmtNode& n) {
    if (n.indices.empty() || n.buffer->type.is_vector()) return;
    if (!n.buffer->strides.empty() && !n.buffer->strides.back().is_const_int(1)) return;
    const Expr& inner = n.indices.back();
    if (inner->op != Op::ramp || !inner->args[1].is_const_int(1)) return;
    for (size_t i = 0; i + 1 < n.indices.size(); ++i)
      if (n.indices[i]->op != Op::broadcast && n.indices[i].type().is_vector()) return;
    for (Expr& i : n.indices)
      if (i.type().is_vector()) i = i->args[0];
  }

  // ---- second walk, backwards: what is not used goes

  void use(const Expr& e) {
    if (!e || !seen_.insert(e.get()).second) return;
    if (e->op == Op::var) used_.insert(e->variable.get());
    for (const Expr& a : e->args) use(a);
  }

  std::vector<Stmt> prune(const std::vector<Stmt>& statements) {
    std::vector<Stmt> r;
    for (auto it = statements.rbegin(); it != statements.rend(); ++it) {
      StmtNode n = **it;
      if (n.kind == StmtKind::let && used_.count(n.variable.get()) == 0) continue;
      if (!n.body.empty() || !n.otherwise.empty()) {
        n.body = prune(n.body);
        n.otherwise = prune(n.otherwise);
      }
      if (n.kind == StmtKind::loop && n.body.empty()) continue;
      if (n.kind == StmtKind::branch && n.body.empty()) {
        if (n.otherwise.empty()) continue;
        n.body.swap(n.otherwise);
        n.value = exprs_.simplify(logical_not(n.value));
      }
      for (const Expr* e : {&n.begin, &n.end, &n.value, &n.mask}) use(*e);
      for (const Expr& i : n.indices) use(i);
      r.push_back(std::make_shared<const StmtNode>(std::move(n)));
    }
    return {r.rbegin(), r.rend()};
  }
};

}  // namespace

Kernel simplify(const Kernel& kernel) { return Simplifier().run(kernel); }

Expr simplify(const Expr& expr) { return ExprSimplifier().simplify(expr); }

}  // namespace cuvil::kernel
