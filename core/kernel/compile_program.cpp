// Kernel IR to steps. Values that depend on no load move to the outermost loop that knows their operands and are
// computed once there (all operators are total, so this is never wrong); loads stay where they are.
#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>

#include "core/base/error.h"
#include "core/kernel/program.h"

namespace cuvil::kernel {
namespace {

/// Where a value lives, and how far out it may be computed.
struct Value {
  uint32_t place = 0;
  int depth = 0;     ///< scope that computes it
  bool pure = true;  ///< depends on no load of this statement
};

bool contains_barrier(const std::vector<Stmt>& body) {
  return std::any_of(body.begin(), body.end(), [](const Stmt& s) {
    return s->kind == StmtKind::barrier || contains_barrier(s->body) || contains_barrier(s->otherwise);
  });
}

uint32_t bytes_of(Type t) { return static_cast<uint32_t>(size_of(t.dtype)) * t.lanes; }

class Compiler {
 public:
  explicit Compiler(const Kernel& kernel) : kernel_(kernel) { out_.kernel = kernel.name; }

  ProgramCode run() {
    scopes_.emplace_back();
    for (const Var& d : kernel_.dims) {
      const uint32_t place = new_place(8);
      out_.dims.push_back(place);
      variables_[d.get()] = {place, 0, true};
    }
    for (size_t i = 0; i < kernel_.params.size(); ++i) declare(kernel_.params[i], static_cast<int>(i));
    find_tracked();
    std::vector<PhasePlan> phases;
    std::vector<std::vector<Step>> bodies;
    for (const Phase& p : kernel_.phases) {
      PhasePlan plan;
      plan.task_count = expr(p.tasks).place;
      end_statement();
      plan.task = new_place(8);
      plan.task_begin = new_place(8);
      plan.task_end = new_place(8);
      variables_[p.task.get()] = {plan.task, 1, true};
      scopes_.emplace_back();
      body(p.body);
      std::vector<Step> steps = close_scope();
      wrap_loop(steps, plan.task, plan.task_begin, plan.task_end, 1);
      steps.push_back({.code = Code::end});
      bodies.push_back(std::move(steps));
      phases.push_back(plan);
    }
    // Steps of the outermost scope (sizes, constants' broadcasts) run once, before the first phase.
    out_.sizes = std::move(scopes_[0].steps);
    out_.sizes.push_back({.code = Code::end});
    for (size_t i = 0; i < phases.size(); ++i) {
      phases[i].begin = out_.steps.size();
      out_.steps.insert(out_.steps.end(), bodies[i].begin(), bodies[i].end());
    }
    out_.phases = std::move(phases);
    return std::move(out_);
  }

 private:
  /// A loop body or branch: its steps, and what dies with it.
  struct Scope {
    std::vector<Step> steps;
    std::vector<std::string> keys;                           ///< entries of known_
    std::vector<std::pair<uint32_t, uint32_t>> owned, free;  ///< (bytes, place)
  };

  int depth() const { return static_cast<int>(scopes_.size()) - 1; }

  uint32_t new_place(uint32_t bytes) {
    const auto place = static_cast<uint32_t>(out_.frame.size());
    CUVIL_CHECK(out_.frame.size() < (size_t{1} << 31), "a kernel too large for the interpreter");
    out_.frame.resize(out_.frame.size() + (bytes + 7) / 8 * 8);
    return place;
  }

  /// A place for a value computed in scope `at`. Places that were freed are taken again by the innermost scope only:
  /// a step moved outwards must not write what an inner step still holds.
  uint32_t place_for(uint32_t bytes, int at, bool temporary) {
    Scope& scope = scopes_[static_cast<size_t>(at)];
    bytes = (bytes + 7) / 8 * 8;
    uint32_t place = 0;
    bool found = false;
    if (at == depth()) {
      for (size_t i = scope.free.size(); i-- > 0 && !found;) {
        if (scope.free[i].first != bytes) continue;
        place = scope.free[i].second;
        scope.free.erase(scope.free.begin() + static_cast<std::ptrdiff_t>(i));
        found = true;
      }
    }
    if (!found) place = new_place(bytes);
    (temporary ? temporaries_ : scope.owned).push_back({bytes, place});
    return place;
  }

  void end_statement(bool keep_temporaries = false) {
    Scope& scope = scopes_.back();
    auto& to = keep_temporaries ? scope.owned : scope.free;
    to.insert(to.end(), temporaries_.begin(), temporaries_.end());
    temporaries_.clear();
    seen_.clear();
  }

  std::vector<Step> close_scope() {
    Scope scope = std::move(scopes_.back());
    scopes_.pop_back();
    for (const std::string& key : scope.keys) known_.erase(key);
    auto& free = scopes_.back().free;
    if (depth() > 0) {  // what the outermost scope frees would be written by one phase and read by sizes
      free.insert(free.end(), scope.owned.begin(), scope.owned.end());
      free.insert(free.end(), scope.free.begin(), scope.free.end());
    }
    return std::move(scope.steps);
  }

  /// Emits a step whose operands are `operands`; reuses an equal one that is known.
  Value emit(Step step, uint32_t bytes, std::initializer_list<Value> operands) {
    int at = 0;
    bool pure = true;
    for (const Value& v : operands) {
      at = std::max(at, v.depth);
      pure = pure && v.pure;
    }
    if (!pure) at = depth();
    std::string key;
    if (pure) {
      step.dst = 0;
      const uint64_t words[] = {
          static_cast<uint64_t>(step.code) << 32 | step.count, step.a, step.b, step.c, static_cast<uint64_t>(step.imm),
          reinterpret_cast<uintptr_t>(step.function)};
      key.assign(reinterpret_cast<const char*>(words), sizeof words);
      if (const auto known = known_.find(key); known != known_.end()) return known->second;
    }
    step.dst = place_for(bytes, at, !pure);
    const Value value{step.dst, at, pure};
    scopes_[static_cast<size_t>(at)].steps.push_back(step);
    if (pure) {
      known_.emplace(key, value);
      scopes_[static_cast<size_t>(at)].keys.push_back(std::move(key));
    }
    return value;
  }

  Value constant(DType dtype, Scalar scalar) {
    unsigned char bytes[8] = {};
    store_scalar(bytes, dtype, scalar);
    uint64_t bits;
    std::memcpy(&bits, bytes, 8);
    const auto [it, fresh] = constants_.emplace(bits, 0);
    if (fresh) {
      it->second = new_place(8);
      std::memcpy(out_.frame.data() + it->second, bytes, 8);
    }
    return {it->second, 0, true};
  }

  Value expr(const Expr& e) {
    if (e->op == Op::const_int || e->op == Op::const_float)
      return constant(e->type.dtype, {e->int_value, e->float_value});
    if (e->op == Op::var) return variables_.at(e->variable.get());
    if (const auto seen = seen_.find(e.get()); seen != seen_.end()) return seen->second;
    const Value v = compute(e);
    seen_.emplace(e.get(), v);
    return v;
  }

  Value compute(const Expr& e) {
    const Type type = e->type;
    const uint32_t bytes = bytes_of(type);
    const auto size = static_cast<uint32_t>(size_of(type.dtype));
    if (e->op == Op::load) {
      const bool masked = e->has_mask;
      return load(*e->buffer, std::span<const Expr>(e->args).first(e->args.size() - masked), type,
                  masked ? e->args.back() : Expr());
    }
    Value v[3] = {};
    for (size_t i = 0; i < e->args.size(); ++i) v[i] = expr(e->args[i]);
    Step s{.count = type.lanes, .a = v[0].place, .b = v[1].place, .c = v[2].place};
    switch (e->op) {
      case Op::ramp:
        s.code = Code::ramp;
        return emit(s, bytes, {v[0], v[1]});
      case Op::broadcast:
        return broadcast(v[0], size, type.lanes);
      case Op::lane:  // a part of the vector's place
        v[0].place += static_cast<uint32_t>(e->int_value) * size;
        return v[0];
      case Op::bitcast:
        return v[0];
      case Op::shuffle: {
        s.code = Code::shuffle;
        s.imm = static_cast<int64_t>(size) << 32 | e->args[0].type().lanes;
        s.c = static_cast<uint32_t>(out_.shuffles.size());
        const auto same = std::find(out_.shuffles.begin(), out_.shuffles.end(), e->lanes);
        if (same != out_.shuffles.end()) {
          s.c = static_cast<uint32_t>(same - out_.shuffles.begin());
        } else {
          out_.shuffles.push_back(e->lanes);
        }
        return emit(s, bytes, {v[0], v[1]});
      }
      case Op::reduce_add:
      case Op::reduce_max:
      case Op::reduce_min:
        s.code = Code::reduce;
        s.count = e->args[0].type().lanes;
        s.imm = static_cast<int64_t>(e->op) << 8 | static_cast<int64_t>(type.dtype);
        return emit(s, bytes, {v[0]});
      case Op::dot:
        s.code = is_float(type.dtype) ? Code::dot_bf16 : Code::dot_i8;
        s.imm = e->args[1].type().dtype == DType::u8;
        return emit(s, bytes, {v[0], v[1], v[2]});
      case Op::cast:
        s.code = Code::lanes;
        s.function = cast_function(type.dtype, e->args[0].type().dtype);
        return emit(s, bytes, {v[0]});
      default:
        break;
    }
    if (e->op == Op::select && !e->args[0].type().is_vector() && type.is_vector()) {
      v[0] = broadcast(v[0], 1, type.lanes);
      s.a = v[0].place;
    }
    const DType operand = e->args.back().type().dtype;
    s.code = type.lanes == 1 ? scalar_code(e->op, operand) : Code::lanes;
    if (s.code == Code::lanes) s.function = lane_function(e->op, operand);
    CUVIL_CHECK(s.code != Code::lanes || s.function, "an operator the interpreter does not know");
    return emit(s, bytes, {v[0], v[1], v[2]});
  }

  static Code scalar_code(Op op, DType t) {
    if (t == DType::i64)
      return op == Op::add ? Code::add_i64 : op == Op::mul ? Code::mul_i64 : op == Op::lt ? Code::lt_i64 : Code::lanes;
    if (t == DType::boolean) return op == Op::bit_and ? Code::and_bool : Code::lanes;
    if (t == DType::f32)
      return op == Op::add   ? Code::add_f32
             : op == Op::mul ? Code::mul_f32
             : op == Op::fma ? Code::fma_f32
                             : Code::lanes;
    return Code::lanes;
  }

  Value broadcast(Value v, uint32_t size, int lanes) {
    return emit({.code = Code::broadcast, .count = static_cast<uint32_t>(lanes), .a = v.place, .imm = size},
                size * static_cast<uint32_t>(lanes), {v});
  }

  uint32_t access(const BufferInfo& b, std::span<const Expr> indices, Type value, const Expr& mask, const char* verb) {
    AccessPlan plan;
    plan.buffer = buffers_.at(&b);
    for (size_t i = 0; i < indices.size(); ++i) plan.indices[i] = expr(indices[i]).place;
    plan.masked = static_cast<bool>(mask);
    if (mask) plan.mask = expr(mask).place;
    const bool gather = !indices.empty() && indices[0].type().is_vector();
    plan.lanes = value.lanes;
    plan.form = gather                                     ? AccessPlan::Form::gather
                : value.is_vector() && !b.type.is_vector() ? AccessPlan::Form::contiguous
                                                           : AccessPlan::Form::element;
    plan.what = verb + b.name;
    out_.accesses.push_back(std::move(plan));
    return static_cast<uint32_t>(out_.accesses.size() - 1);
  }

  Value load(const BufferInfo& b, std::span<const Expr> indices, Type value, const Expr& mask) {
    Step s{.a = access(b, indices, value, mask, "load of ")};
    const AccessPlan& plan = out_.accesses[s.a];
    s.code = plan.lanes == 1 && plan.form == AccessPlan::Form::element && !plan.masked ? Code::load : Code::load_lanes;
    s.count = bytes_of(value);
    return emit(s, bytes_of(value), {Value{0, depth(), false}});
  }

  void declare(const Buffer& b, int parameter) {
    BufferPlan plan{b, parameter, bytes_of(b->type), {}, {}, false, thread_loops_ > 0};
    for (const Expr& e : b->shape) plan.extents.push_back(expr(e).place);
    for (const Expr& e : b->strides) plan.strides.push_back(expr(e).place);
    end_statement();
    buffers_[b.get()] = static_cast<uint32_t>(out_.buffers.size());
    out_.buffers.push_back(std::move(plan));
  }

  /// Parameters that are read before anybody else wrote them need watching: out and work, if read at all.
  void find_tracked() {
    for (const Phase& p : kernel_.phases)
      visit(
          p.body, [](const StmtNode&) {},
          [&](const ExprNode& e) {
            if (e.op != Op::load || e.buffer->access == Access::in || e.buffer->access == Access::inout) return;
            if (const auto found = buffers_.find(e.buffer.get()); found != buffers_.end())
              out_.buffers[found->second].tracked = true;
          });
  }

  /// `steps` as the body of a loop.
  static void wrap_loop(std::vector<Step>& steps, uint32_t variable, uint32_t begin, uint32_t end, int64_t step) {
    const auto length = static_cast<int64_t>(steps.size());
    steps.insert(steps.begin(), {.code = Code::loop_enter, .dst = variable, .a = begin, .b = end, .imm = length + 2});
    steps.push_back(
        {.code = Code::loop_next, .dst = variable, .b = end, .c = static_cast<uint32_t>(length), .imm = step});
  }

  void append(const std::vector<Step>& steps) {
    scopes_.back().steps.insert(scopes_.back().steps.end(), steps.begin(), steps.end());
  }

  void body(const std::vector<Stmt>& statements) {
    for (const Stmt& s : statements) statement(*s);
  }

  void statement(const StmtNode& s) {
    switch (s.kind) {
      case StmtKind::block:
        body(s.body);
        break;
      case StmtKind::loop:
        if (s.loop >= LoopKind::gpu_thread_x && contains_barrier(s.body)) {
          threads(s);
        } else {
          loop(s);
        }
        break;
      case StmtKind::let: {
        Value v = expr(s.value);
        v.pure = true;  // from here on a value like any other, but of this scope
        variables_[s.variable.get()] = v;
        end_statement(true);
        break;
      }
      case StmtKind::alloc:
        declare_local(s.buffer);
        break;
      case StmtKind::store: {
        const Value value = expr(s.value);
        Step step{.a = access(*s.buffer, s.indices, s.value.type(), s.mask, "store to "), .b = value.place};
        const AccessPlan& plan = out_.accesses[step.a];
        step.code =
            plan.lanes == 1 && plan.form == AccessPlan::Form::element && !plan.masked ? Code::store : Code::store_lanes;
        step.count = bytes_of(s.value.type());
        scopes_.back().steps.push_back(step);
        end_statement();
        break;
      }
      case StmtKind::branch:
        branch(s);
        break;
      case StmtKind::prefetch:
        break;
      case StmtKind::barrier:
        if (thread_loops_ > 0) scopes_.back().steps.push_back({.code = Code::barrier});
        break;
      case StmtKind::fail:
        scopes_.back().steps.push_back({.code = Code::fail, .imm = s.code});
        break;
    }
  }

  void declare_local(const Buffer& b) {
    if (!buffers_.contains(b.get())) declare(b, -1);
    const uint32_t number = buffers_.at(b.get());
    out_.buffers[number].tracked = true;
    scopes_.back().steps.push_back({.code = Code::alloc, .a = number});
  }

  void loop(const StmtNode& s) {
    const Value begin = expr(s.begin), end = expr(s.end);
    end_statement(true);  // the end is asked after every iteration
    scopes_.emplace_back();
    const uint32_t variable = place_for(8, depth(), false);
    variables_[s.variable.get()] = {variable, depth(), true};
    body(s.body);
    std::vector<Step> steps = close_scope();
    wrap_loop(steps, variable, begin.place, end.place, s.step);
    append(steps);
  }

  void branch(const StmtNode& s) {
    const Value condition = expr(s.value);
    end_statement(true);
    scopes_.emplace_back();
    body(s.body);
    std::vector<Step> then = close_scope();
    scopes_.emplace_back();
    body(s.otherwise);
    const std::vector<Step> otherwise = close_scope();
    if (!otherwise.empty()) then.push_back({.code = Code::jump, .imm = static_cast<int64_t>(otherwise.size()) + 1});
    scopes_.back().steps.push_back(
        {.code = Code::jump_unless, .a = condition.place, .imm = static_cast<int64_t>(then.size()) + 1});
    append(then);
    append(otherwise);
  }

  /// A direct nest of gpu_thread loops with a barrier inside.
  void threads(const StmtNode& s) {
    ThreadNest nest;
    const StmtNode* innermost = &s;
    scopes_.emplace_back();
    for (;; innermost = innermost->body[0].get()) {
      nest.variables.push_back(place_for(8, depth(), false));
      nest.extents.push_back(innermost->end->int_value);
      variables_[innermost->variable.get()] = {nest.variables.back(), depth(), true};
      const bool deeper = innermost->body.size() == 1 && innermost->body[0]->kind == StmtKind::loop &&
                          innermost->body[0]->loop >= LoopKind::gpu_thread_x;
      if (!deeper) break;
    }
    ++thread_loops_;
    body(innermost->body);
    --thread_loops_;
    std::vector<Step> steps = close_scope();
    steps.push_back({.code = Code::end});
    out_.nests.push_back(std::move(nest));
    scopes_.back().steps.push_back({.code = Code::threads,
                                    .a = static_cast<uint32_t>(out_.nests.size() - 1),
                                    .imm = static_cast<int64_t>(steps.size())});
    append(steps);
  }

  const Kernel& kernel_;
  ProgramCode out_;
  std::vector<Scope> scopes_;
  std::vector<std::pair<uint32_t, uint32_t>> temporaries_;
  std::unordered_map<std::string, Value> known_;
  std::unordered_map<const ExprNode*, Value> seen_;  ///< of this statement
  std::map<uint64_t, uint32_t> constants_;
  std::unordered_map<const VarInfo*, Value> variables_;
  std::unordered_map<const BufferInfo*, uint32_t> buffers_;
  int thread_loops_ = 0;
};

}  // namespace

ProgramCode compile_program(const Kernel& kernel) { return Compiler(kernel).run(); }

}  // namespace cuvil::kernel
