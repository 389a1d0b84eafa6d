// The rules of well-formed Kernel IR. Those of one expression (types, lanes, accesses) are in expr_rules.cpp.
//
//  1. A kernel's name is made of a-z, 0-9 and _; its dims and tasks are i64 scalars.
//  2. Parameters are in space global, or constant and then `in`; allocs are in scratch, reg or shared.
//  3. Shapes and strides are i64 scalars over constants and dims; a reg shape is constant; strides are one per
//     dimension; a buffer has at most 12 dimensions. Only reg holds vectors.
//  4. The number of tasks is an expression over dims.
//  5. A variable is visible where it is used: a dim, the phase's task, an enclosing loop's, an earlier let of an
//     enclosing body; so is a buffer: a parameter or an earlier alloc. None is bound again where it is visible.
//  6. A let's variable has its value's type. Loop variables, begin and end are i64 scalars, the step is positive.
//  7. An unroll loop's begin and end hold nothing but constants and variables of enclosing unroll loops.
//  8. A vector loop is innermost: no loop, alloc, barrier or fail in it, and its values are scalars.
//  9. A gpu_thread loop runs from 0 by 1 to a constant; an axis occurs once in a nest. What is stored in it lies in
//     global or shared memory or in a reg buffer of that loop; it allocates only reg.
// 10. A barrier is reached by all threads: inside gpu_thread loops it is in no branch, in no loop whose bounds differ
//     between threads (depend on a thread's number or on a load), and the thread loops around it nest directly.
// 11. A branch's condition is a scalar bool. A fail code is not 0 and fits 32 bits. A prefetch is of level 1 or 2 and
//     not of a reg buffer.
// 12. Nothing is stored to an `in` parameter.
#include "core/kernel/verify.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>

#include "core/base/error.h"
#include "core/kernel/expr_rules.h"

namespace cuvil::kernel {
namespace {

bool is_thread_loop(LoopKind k) { return k >= LoopKind::gpu_thread_x; }

bool contains_barrier(const std::vector<Stmt>& body) {
  return std::any_of(body.begin(), body.end(), [](const Stmt& s) {
    return s->kind == StmtKind::barrier || contains_barrier(s->body) || contains_barrier(s->otherwise);
  });
}

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel) {}

  void run() {
    check(!kernel_.name.empty() &&
              kernel_.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos,
          "a kernel's name is made of a-z, 0-9 and _");
    for (const Var& d : kernel_.dims) {
      check(d && d->type == kIndex, "a dim is an i64 scalar");
      bind(d);
    }
    for (const Buffer& b : kernel_.params) {
      check(b != nullptr, "a parameter is missing");
      buffer(*b);
      check(b->space == Space::global || (b->space == Space::constant && b->access == Access::in),
            [&] { return "parameter " + b->name + " is in global memory, or constant and in"; });
      bind(b);
    }
    for (size_t i = 0; i < kernel_.phases.size(); ++i) {
      const Phase& p = kernel_.phases[i];
      place_ = "phase " + std::to_string(i);
      over_dims(p.tasks, "the number of tasks");
      check(p.task && p.task->type == kIndex, "the task number is an i64 scalar");
      const Mark mark = this->mark();
      bind(p.task);
      body(p.body);
      release(mark);
    }
  }

 private:
  struct Mark {
    size_t vars, buffers;
  };
  /// What a visible variable is, as far as rules ask.
  struct Bound {
    Var var;
    bool unrolled = false;  ///< of an unroll loop
    bool differs = false;   ///< may differ between threads of a task
  };
  [[noreturn]] void fail(const std::string& rule) const {
    std::string where = place_;
    for (const StmtNode* s : around_) where += " > " + describe(*s);
    throw_internal("kernel " + kernel_.name + ", " + where + ": " + rule);
  }
  void check(bool ok, const char* rule) const {
    if (!ok) fail(rule);
  }
  /// The text of a broken rule is made only when it is broken.
  template <class Text>
  void check(bool ok, const Text& rule) const
    requires std::is_invocable_v<Text>
  {
    if (!ok) fail(rule());
  }

  Mark mark() const { return {var_order_.size(), buffer_order_.size()}; }
  void release(Mark m) {
    for (; var_order_.size() > m.vars; var_order_.pop_back()) vars_.erase(var_order_.back().get());
    for (; buffer_order_.size() > m.buffers; buffer_order_.pop_back()) buffers_.erase(buffer_order_.back().get());
  }
  const Bound* find(const Var& v) const {
    const auto found = vars_.find(v.get());
    return found == vars_.end() ? nullptr : &found->second;
  }
  bool visible(const Buffer& b) const { return buffers_.contains(b.get()); }
  void bind(const Var& v, bool unrolled = false, bool differs = false) {
    check(vars_.emplace(v.get(), Bound{v, unrolled, differs}).second,
          [&] { return "variable " + v->name + " is bound where it is visible already"; });
    var_order_.push_back(v);
  }
  void bind(const Buffer& b) {
    check(buffers_.emplace(b.get(), axes_.size()).second,
          [&] { return "buffer " + b->name + " is declared where it is visible already"; });
    buffer_order_.push_back(b);
  }

  /// Checks a tree once per statement; returns whether its value may differ between threads.
  bool expr(const Expr& e) {
    check(static_cast<bool>(e), "an expression is missing");
    seen_.clear();
    return node(e);
  }
  bool node(const Expr& e) {
    check(static_cast<bool>(e), "an operand is missing");
    if (!e->args.empty() && !seen_.insert(e.get()).second) return false;  // counted where it was seen
    bool differs = false;
    for (const Expr& a : e->args) {
      check(static_cast<bool>(a), "an operand is missing");
      differs = node(a) || differs;
    }
    if (const std::string rule = broken_rule(*e); !rule.empty()) fail(rule);
    check(!in_vector_loop_ || !e->type.is_vector(), "a vector loop computes scalars");
    if (e->op == Op::var) {
      const Bound* b = find(e->variable);
      check(b != nullptr, [&] { return "variable " + e->variable->name + " is not visible here"; });
      differs = b->differs;
    } else if (e->op == Op::load) {
      check(visible(e->buffer), [&] { return "buffer " + e->buffer->name + " is not visible here"; });
      differs = true;
    }
    return differs;
  }

  void index_scalar(const Expr& e, const std::string& what) {
    check(e && e.type() == kIndex, [&] { return what + " is an i64 scalar"; });
  }
  /// Dims are the first variables that are bound.
  void over_dims(const Expr& e, const std::string& what) {
    index_scalar(e, what);
    expr(e);
    only(e, what, "constants and dims", [&](const Bound& b) {
      return std::find(kernel_.dims.begin(), kernel_.dims.end(), b.var) != kernel_.dims.end();
    });
  }
  template <class F>
  void only(const Expr& e, const std::string& what, const std::string& of, const F& allowed) {
    seen_.clear();
    only_below(e, what, of, allowed);
  }
  template <class F>
  void only_below(const Expr& e, const std::string& what, const std::string& of, const F& allowed) {
    if (!e->args.empty() && !seen_.insert(e.get()).second) return;
    check(e->op != Op::load && (e->op != Op::var || allowed(*find(e->variable))),
          [&] { return what + " is made of " + of; });
    for (const Expr& a : e->args) only_below(a, what, of, allowed);
  }

  void buffer(const BufferInfo& b) {
    const std::string name = "buffer " + b.name;
    check(b.type.lanes >= 1 && b.type.lanes <= kMaxLanes, [&] { return name + " has elements of " + b.type.str(); });
    check(!b.type.is_vector() || b.space == Space::reg, [&] { return name + ": only reg holds vectors"; });
    check(b.shape.size() <= kMaxRank, [&] { return name + " has too many dimensions"; });
    check(b.strides.empty() || b.strides.size() == b.shape.size(),
          [&] { return name + " has one stride per dimension"; });
    for (const Expr& extent : b.shape) {
      over_dims(extent, name + ": an extent");
      check(b.space != Space::reg || extent->op == Op::const_int, [&] { return name + ": a reg extent is constant"; });
    }
    for (const Expr& stride : b.strides) over_dims(stride, name + ": a stride");
  }

  void access(const StmtNode& s) {
    check(s.buffer && visible(s.buffer), [&] { return describe(s) + ": the buffer is not visible here"; });
    for (const Expr& i : s.indices) expr(i);
  }

  void body(const std::vector<Stmt>& statements) {
    const Mark m = mark();
    for (const Stmt& s : statements) {
      check(s != nullptr, "a statement is missing");
      statement(*s);
    }
    release(m);
  }

  void statement(const StmtNode& s) {
    around_.push_back(&s);
    if (in_vector_loop_)
      check(s.kind != StmtKind::loop && s.kind != StmtKind::alloc && s.kind != StmtKind::barrier &&
                s.kind != StmtKind::fail,
            "a vector loop holds no loop, alloc, barrier or fail");
    switch (s.kind) {
      case StmtKind::block:
        body(s.body);
        break;
      case StmtKind::loop:
        loop(s);
        break;
      case StmtKind::let: {
        const bool differs = expr(s.value);
        check(s.variable && s.variable->type == s.value.type(), "a let's variable has its value's type");
        bind(s.variable, false, differs);
        break;
      }
      case StmtKind::alloc:
        check(s.buffer != nullptr, "an alloc without buffer");
        buffer(*s.buffer);
        check(s.buffer->space == Space::scratch || s.buffer->space == Space::reg || s.buffer->space == Space::shared,
              "an alloc is in scratch, reg or shared memory");
        check(axes_.empty() || s.buffer->space == Space::reg, "a gpu_thread loop allocates only reg buffers");
        bind(s.buffer);
        break;
      case StmtKind::store:
        store(s);
        break;
      case StmtKind::branch:
        expr(s.value);
        check(s.value.type() == kBool, "a branch's condition is a scalar bool");
        ++branches_;
        body(s.body);
        body(s.otherwise);
        --branches_;
        break;
      case StmtKind::prefetch: {
        access(s);
        check(s.code == 1 || s.code == 2, "a prefetch is of level 1 or 2");
        check(s.buffer->space != Space::reg, "a prefetch is of memory, not of reg");
        const std::string rule = broken_access_rule(*s.buffer, s.indices, s.buffer->type, {});
        if (!rule.empty()) fail(rule);
        break;
      }
      case StmtKind::barrier:
        check(axes_.empty() || (branches_ == 0 && !loop_differs_), "a barrier is reached by all threads alike");
        break;
      case StmtKind::fail:
        check(s.code != 0 && s.code >= std::numeric_limits<int32_t>::min() &&
                  s.code <= std::numeric_limits<int32_t>::max(),
              "a fail code is not 0 and fits 32 bits");
        break;
    }
    around_.pop_back();
  }

  void store(const StmtNode& s) {
    access(s);
    expr(s.value);
    if (s.mask) expr(s.mask);
    if (const std::string rule = broken_access_rule(*s.buffer, s.indices, s.value.type(), s.mask); !rule.empty())
      fail(rule);
    const bool parameter = s.buffer->space == Space::global || s.buffer->space == Space::constant;
    check(!parameter || s.buffer->access != Access::in, "nothing is stored to an `in` parameter");
    check(axes_.empty() || s.buffer->space != Space::reg || buffers_.at(s.buffer.get()) == axes_.size(),
          "a gpu_thread loop stores to its own reg buffers only");
    check(axes_.empty() || s.buffer->space != Space::scratch,
          "a gpu_thread loop stores to shared, not scratch, memory");
  }

  void loop(const StmtNode& s) {
    index_scalar(s.begin, "a loop's begin");
    index_scalar(s.end, "a loop's end");
    const bool begin_differs = expr(s.begin), differs = expr(s.end) || begin_differs;
    check(s.variable && s.variable->type == kIndex, "a loop variable is an i64 scalar");
    check(s.step > 0, "a loop's step is positive");
    if (s.loop == LoopKind::unroll)
      for (const Expr* e : {&s.begin, &s.end})
        only(*e, "an unroll loop's bound", "constants and variables of unroll loops",
             [](const Bound& b) { return b.unrolled; });
    const bool threads = is_thread_loop(s.loop);
    if (threads) {
      check(s.begin.is_const_int(0) && s.step == 1 && s.end->op == Op::const_int,
            "a gpu_thread loop runs from 0 by 1 to a constant");
      check(std::find(axes_.begin(), axes_.end(), s.loop) == axes_.end(), "a thread axis occurs once in a nest");
      const StmtNode* parent = around_.size() > 1 ? around_[around_.size() - 2] : nullptr;
      const bool direct = parent && parent->kind == StmtKind::loop && is_thread_loop(parent->loop);
      check(axes_.empty() || (direct && parent->body.size() == 1) || !contains_barrier(s.body),
            "gpu_thread loops around a barrier nest directly");
    }
    const Mark m = mark();
    bind(s.variable, s.loop == LoopKind::unroll, threads || differs);
    const bool outer_vector = in_vector_loop_, outer_differs = loop_differs_;
    const int outer_branches = branches_;
    in_vector_loop_ = s.loop == LoopKind::vector;
    if (threads) {
      if (axes_.empty()) branches_ = 0;
      axes_.push_back(s.loop);
    } else if (!axes_.empty()) {
      loop_differs_ = loop_differs_ || differs;
    }
    body(s.body);
    if (threads) axes_.pop_back();
    in_vector_loop_ = outer_vector;
    loop_differs_ = outer_differs;
    branches_ = outer_branches;
    release(m);
  }

  static std::string describe(const StmtNode& s) {
    const std::string buffer = s.buffer ? s.buffer->name : "?", var = s.variable ? s.variable->name : "?";
    switch (s.kind) {
      case StmtKind::block:
        return "block";
      case StmtKind::loop:
        return "loop " + var;
      case StmtKind::let:
        return "let " + var;
      case StmtKind::alloc:
        return "alloc " + buffer;
      case StmtKind::store:
        return "store to " + buffer;
      case StmtKind::branch:
        return "branch";
      case StmtKind::prefetch:
        return "prefetch of " + buffer;
      case StmtKind::barrier:
        return "barrier";
      case StmtKind::fail:
        return "fail";
    }
    return "?";
  }

  const Kernel& kernel_;
  std::string place_ = "its head";
  std::vector<const StmtNode*> around_;  ///< the statements that lead to where the verifier is
  // What is visible, to look up, and in the order of declaration, to undo.
  std::unordered_map<const VarInfo*, Bound> vars_;
  std::unordered_map<const BufferInfo*, size_t> buffers_;  ///< thread loops that were open at its declaration
  std::vector<Var> var_order_;
  std::vector<Buffer> buffer_order_;
  std::unordered_set<const ExprNode*> seen_;  ///< nodes of the statement's expression, asked but never listed
  std::vector<LoopKind> axes_;                ///< gpu_thread loops around this place
  int branches_ = 0;                          ///< branches around this place, within the outermost thread loop
  bool loop_differs_ = false;                 ///< one of these has bounds that differ between threads
  bool in_vector_loop_ = false;
};

}  // namespace

void verify(const Kernel& kernel) { Verifier(kernel).run(); }

}  // namespace cuvil::kernel
