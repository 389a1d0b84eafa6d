#include <functional>
#include <unordered_map>

#include "core/base/error.h"
#include "core/kernel/copy.h"
#include "core/kernel/math.h"
#include "core/kernel/transform.h"

namespace cuvil::kernel {
namespace {

Expr expand_f32(Op op, const std::vector<Expr>& x) {
  switch (op) {
    case Op::exp:
      return math::exp(x[0]);
    case Op::log:
      return math::log(x[0]);
    case Op::tanh:
      return math::tanh(x[0]);
    case Op::erf:
      return math::erf(x[0]);
    case Op::sigmoid:
      return math::sigmoid(x[0]);
    case Op::sin:
      return math::sin(x[0]);
    case Op::cos:
      return math::cos(x[0]);
    case Op::tan:
      return math::tan(x[0]);
    case Op::asin:
      return math::asin(x[0]);
    case Op::acos:
      return math::acos(x[0]);
    case Op::atan:
      return math::atan(x[0]);
    case Op::sinh:
      return math::sinh(x[0]);
    case Op::cosh:
      return math::cosh(x[0]);
    case Op::asinh:
      return math::asinh(x[0]);
    case Op::acosh:
      return math::acosh(x[0]);
    case Op::atanh:
      return math::atanh(x[0]);
    case Op::pow:
      return math::pow(x[0], x[1]);
    default:
      throw_internal("not a transcendental function: " + std::string(info(op).name));
  }
}

Expr expand_f64(Op op, const Type& type, const Expr& x) {
  switch (op) {
    case Op::exp:
      return math::exp_f64(x);
    case Op::log:
      return math::log_f64(x);
    case Op::tanh:
      return math::tanh_f64(x);
    case Op::sigmoid:
      return math::sigmoid_f64(x);
    case Op::sinh:
      return math::sinh_f64(x);
    case Op::cosh:
      return math::cosh_f64(x);
    default:
      throw_unsupported(std::string(info(op).name) + " of " + type.str() +
                        " has no native code; cast the operand to f32, or run the model with the reference backend");
  }
}

Expr expand_node(const Expr& e, const std::vector<Expr>& args) {
  const Type type = e->type;
  switch (type.dtype) {
    case DType::f32:
      return expand_f32(e->op, args);
    case DType::f16:
    case DType::bf16: {
      std::vector<Expr> wide;
      for (const Expr& a : args) wide.push_back(math::to_f32(a));
      return kernel::cast(type, expand_f32(e->op, wide));
    }
    default:
      return expand_f64(e->op, type, args[0]);
  }
}

/// Expands each node of a graph once.
class Expander {
 public:
  Expr expand(const Expr& e) {
    if (!e || e->args.empty()) return e;
    if (const auto it = done_.find(e.get()); it != done_.end()) return it->second.second;
    std::vector<Expr> args;
    bool same = true;
    for (const Expr& a : e->args) {
      args.push_back(expand(a));
      same = same && args.back().get() == a.get();
    }
    Expr r;
    if (is_transcendental(e->op)) {
      r = expand_node(e, args);
    } else {
      r = same ? e : with_args(e, std::move(args));
    }
    done_[e.get()] = {e, r};
    return r;
  }

 private:
  std::unordered_map<const ExprNode*, std::pair<Expr, Expr>> done_;
};

/// Turns nodes with more than one use into lets, so that a statement is a tree again: text, interpreter and code
/// generator then take time linear in it.
class Namer {
 public:
  explicit Namer(std::vector<Stmt>& out) : out_(out) {}

  void count(const Expr& e) {
    if (!e || trivial(e)) return;
    if (++uses_[e.get()] > 1) return;
    for (const Expr& a : e->args) count(a);
  }

  Expr named(const Expr& e) {
    if (!e || trivial(e)) return e;
    if (const auto it = done_.find(e.get()); it != done_.end()) return it->second;
    std::vector<Expr> args;
    bool same = true;
    for (const Expr& a : e->args) {
      args.push_back(named(a));
      same = same && args.back().get() == a.get();
    }
    Expr r = same ? e : with_args(e, std::move(args));
    if (uses_[e.get()] > 1) {
      const Var var = make_var("m", e.type());
      StmtNode let{StmtKind::let};
      let.variable = var;
      let.value = r;
      out_.push_back(std::make_shared<const StmtNode>(std::move(let)));
      r = Expr(var);
    }
    done_[e.get()] = r;
    return r;
  }

 private:
  std::vector<Stmt>& out_;
  std::unordered_map<const ExprNode*, int> uses_;
  std::unordered_map<const ExprNode*, Expr> done_;

  static bool trivial(const Expr& e) { return e->args.empty() || (e->op == Op::broadcast && e->args[0]->args.empty()); }
};

std::vector<Stmt> expand_body(const std::vector<Stmt>& body) {
  std::vector<Stmt> r;
  for (const Stmt& s : body) {
    StmtNode n = *s;
    Expander expander;
    bool same = true;
    const auto each = [&n](const std::function<void(Expr&)>& f) {
      for (Expr* e : {&n.begin, &n.end, &n.value, &n.mask}) f(*e);
      for (Expr& e : n.indices) f(e);
    };
    each([&](Expr& e) {
      const Expr x = expander.expand(e);
      same = same && x.get() == e.get();
      e = x;
    });
    if (!same) {
      Namer namer(r);
      each([&](Expr& e) { namer.count(e); });
      each([&](Expr& e) { e = namer.named(e); });
    }
    n.body = expand_body(s->body);
    n.otherwise = expand_body(s->otherwise);
    same = same && n.body == s->body && n.otherwise == s->otherwise;
    r.push_back(same ? s : std::make_shared<const StmtNode>(std::move(n)));
  }
  return r;
}

}  // namespace

Expr expand_math(const Expr& expr) { return Expander().expand(expr); }

Kernel expand_math(const Kernel& kernel) {
  Kernel r = kernel;
  for (Phase& p : r.phases) p.body = expand_body(p.body);
  return r;
}

}  // namespace cuvil::kernel
