#include "core/kernel/vector_body.h"

#include "core/kernel/copy.h"

namespace cuvil::kernel {
namespace {

bool is_ramp(const Expr& e) { return e->op == Op::ramp; }

/// Lane 0 of a form.
Expr first_lane(const Expr& e) { return is_ramp(e) ? e->args[0] : lane(e, 0); }

Expr lane_of(const Expr& e, int i) {
  if (!is_ramp(e)) return lane(e, i);
  return e->args[0] + e->args[1] * Expr(i);
}

/// All scalars but the last, which moves by one: contiguous where the last dimension is.
bool is_contiguous(const BufferInfo& buffer, const std::vector<Expr>& indices) {
  if (indices.empty() || (!buffer.strides.empty() && !buffer.strides.back().is_const_int(1))) return false;
  for (size_t i = 0; i + 1 < indices.size(); ++i)
    if (indices[i].type().is_vector()) return false;
  return is_ramp(indices.back()) && indices.back()->args[1].is_const_int(1);
}

bool all_scalar(const std::vector<Expr>& values) {
  for (const Expr& v : values)
    if (v.type().is_vector()) return false;
  return true;
}

}  // namespace

VectorBody::VectorBody(const Var& loop_variable, Expr first, int64_t step, int lanes, Expr mask,
                       const std::vector<Reduction>& reductions)
    : lanes_(lanes), mask_(std::move(mask)), reductions_(reductions) {
  forms_[loop_variable.get()] = ramp(std::move(first), step, lanes);
}

bool VectorBody::emit(const std::vector<Stmt>& body, std::vector<Stmt>& out) {
  std::vector<Stmt>* const outer = out_;
  out_ = &out;
  for (const Stmt& s : body) statement(*s);
  out_ = outer;
  return !failed_;
}

std::optional<Op> VectorBody::update_of(const StmtNode& store, const ExprNode** load) {
  const Expr& v = store.value;
  const auto reads = [&](const Expr& e) {
    if (e->op != Op::load || e->buffer != store.buffer || e->has_mask) return false;
    for (size_t i = 0; i < e->args.size(); ++i)
      if (!equal(e->args[i], store.indices[i])) return false;
    *load = e.get();
    return true;
  };
  switch (v->op) {
    case Op::add:
    case Op::min:
    case Op::max:
      if (reads(v->args[0]) || reads(v->args[1])) return v->op;
      break;
    case Op::sub:
      if (reads(v->args[0])) return Op::add;
      break;
    case Op::fma:
      if (reads(v->args[2])) return Op::add;
      break;
    default:
      break;
  }
  return std::nullopt;
}

const Reduction* VectorBody::reduction(const Buffer& buffer, const std::vector<Expr>& indices) const {
  for (const Reduction& r : reductions_) {
    bool same = r.buffer == buffer;
    for (size_t i = 0; same && i < indices.size(); ++i) same = equal(r.indices[i], indices[i]);
    if (same) return &r;
  }
  return nullptr;
}

// ---- expressions

Expr VectorBody::vector(const Expr& e) {
  if (!e) return e;
  if (const auto it = done_.find(e.get()); it != done_.end()) return it->second.second;
  const Expr r = compute(e);
  done_[e.get()] = {e, r};
  return r;
}

Expr VectorBody::compute(const Expr& e) {
  if (e->op == Op::var) {
    const auto it = forms_.find(e->variable.get());
    return it == forms_.end() ? e : it->second;
  }
  std::vector<Expr> args;
  for (const Expr& a : e->args) args.push_back(vector(a));
  if (e->op == Op::load) return load_form(e, std::move(args));
  if (e->args.empty()) return e;
  if (all_scalar(args)) return with_args(e, std::move(args));
  return arithmetic(e, std::move(args));
}

Expr VectorBody::arithmetic(const Expr& e, std::vector<Expr> args) {
  switch (e->op) {
    case Op::cast:
      return cast(e->type, args[0]);
    case Op::bitcast:
      return bitcast(e->type.with_lanes(lanes_), args[0]);
    case Op::ramp:
    case Op::broadcast:
    case Op::lane:
    case Op::shuffle:
    case Op::reduce_add:
    case Op::reduce_max:
    case Op::reduce_min:
    case Op::dot:
      failed_ = true;
      return e;
    default:
      break;
  }
  // Sums and multiples of ramps are ramps: accesses stay contiguous.
  if (e->type == kIndex && args.size() == 2) {
    const Expr &a = args[0], &b = args[1];
    const auto base = [](const Expr& x) { return is_ramp(x) ? x->args[0] : x; };
    const auto stride = [](const Expr& x) { return is_ramp(x) ? x->args[1] : Expr(0); };
    const bool linear = (is_ramp(a) || !a.type().is_vector()) && (is_ramp(b) || !b.type().is_vector());
    if (linear && e->op == Op::add) return ramp(base(a) + base(b), stride(a) + stride(b), lanes_);
    if (linear && e->op == Op::sub) return ramp(base(a) - base(b), stride(a) - stride(b), lanes_);
    if (linear && e->op == Op::mul && !is_ramp(b)) return ramp(base(a) * b, stride(a) * b, lanes_);
    if (linear && e->op == Op::mul && !is_ramp(a)) return ramp(a * base(b), a * stride(b), lanes_);
  }
  return make(e->op, std::move(args));
}

Expr VectorBody::combined_mask(const Expr& own) const {
  if (!own) return mask_;
  if (!mask_) return own;
  return make(Op::bit_and, {broadcast(own, lanes_), mask_});
}

Expr VectorBody::load_form(const Expr& e, std::vector<Expr> args) {
  Expr own;
  if (e->has_mask) {
    own = args.back();
    args.pop_back();
  }
  if (reduction(e->buffer, args)) {
    failed_ = true;  // only its own update reads it, and that does not come here
    return e;
  }
  if (all_scalar(args)) {
    // The same element for all lanes. It is read once, unless perhaps no lane at all reads it.
    const bool uniform_mask = !own || !own.type().is_vector();
    if (uniform_mask && !divergent_) return load(e->buffer, std::move(args), 1, own);
    for (Expr& i : args) i = broadcast(i, lanes_);
    if (args.empty() || e->buffer->space == Space::reg) {
      // Nothing to gather from; a reg element is there whether a lane runs or not.
      if (!args.empty() && uniform_mask && !own) {
        for (Expr& i : args) i = i->args[0];
        return load(e->buffer, std::move(args));
      }
      failed_ = true;
      return e;
    }
    return load(e->buffer, std::move(args), lanes_, combined_mask(own));
  }
  const Expr mask = combined_mask(own);
  if (is_contiguous(*e->buffer, args)) {
    args.back() = args.back()->args[0];
    return load(e->buffer, std::move(args), lanes_, mask);
  }
  if (e->buffer->space == Space::reg) {
    failed_ = true;  // registers cannot be gathered from
    return e;
  }
  return load(e->buffer, std::move(args), lanes_, mask);
}

Expr VectorBody::named(const std::string& name, const Expr& value) {
  const Var var = make_var(name, value.type());
  StmtNode n{StmtKind::let};
  n.variable = var;
  n.value = value;
  add(std::move(n));
  return Expr(var);
}

// ---- statements

void VectorBody::statement(const StmtNode& s) {
  done_.clear();  // a load after a store is another value; masks differ between branches
  switch (s.kind) {
    case StmtKind::block:
      for (const Stmt& b : s.body) statement(*b);
      return;
    case StmtKind::let: {
      const Expr v = vector(s.value);
      const std::string& name = s.variable->name;
      // A ramp is kept as a name of its first lane: what uses it stays contiguous.
      forms_[s.variable.get()] = is_ramp(v) ? ramp(named(name, v->args[0]), v->args[1], lanes_) : named(name, v);
      return;
    }
    case StmtKind::store:
      return store(s);
    case StmtKind::branch:
      return branch(s);
    case StmtKind::prefetch: {
      if (divergent_) return;
      StmtNode n = s;
      for (Expr& i : n.indices) i = first_lane(vector(i));
      add(std::move(n));
      return;
    }
    default:
      failed_ = true;
      return;
  }
}

void VectorBody::store(const StmtNode& s) {
  const ExprNode* read = nullptr;
  if (const Reduction* r = reduction(s.buffer, s.indices); r && update_of(s, &read)) {
    std::vector<Expr> args;
    for (const Expr& a : s.value->args)
      args.push_back(a.get() == read ? load(r->partial, {0}) : broadcast(vector(a), lanes_));
    StmtNode n = s;
    n.buffer = r->partial;
    n.indices = {Expr(0)};
    n.value = make(s.value->op, std::move(args));
    n.mask = combined_mask(vector(s.mask));
    if (n.mask) n.mask = broadcast(n.mask, lanes_);
    add(std::move(n));
    return;
  }
  std::vector<Expr> indices;
  for (const Expr& i : s.indices) indices.push_back(vector(i));
  const Expr value = broadcast(vector(s.value), lanes_);
  const Expr mask = combined_mask(vector(s.mask));
  if (all_scalar(indices)) {
    failed_ = failed_ || lanes_ > 1;  // all iterations write one element: a dependence
    if (failed_) return;
  }
  if (lanes_ == 1 || is_contiguous(*s.buffer, indices)) {
    StmtNode n = s;
    if (lanes_ > 1) indices.back() = indices.back()->args[0];
    n.indices = std::move(indices);
    n.value = value;
    n.mask = mask ? broadcast(mask, lanes_) : mask;
    add(std::move(n));
    return;
  }
  if (s.buffer->space == Space::reg) {
    failed_ = true;
    return;
  }
  scatter(s, std::move(indices), value, mask);
}

void VectorBody::scatter(const StmtNode& s, std::vector<Expr> indices, Expr value, const Expr& mask) {
  const auto once = [&](const std::string& name, const Expr& e) {
    if (is_ramp(e)) return ramp(named(name, e->args[0]), e->args[1], lanes_);
    return e->op == Op::broadcast || e->op == Op::var ? e : named(name, e);
  };
  value = once("v", value);
  for (Expr& i : indices) i = once("at", i);
  const Expr lanes_on = mask ? once("on", broadcast(mask, lanes_)) : mask;
  for (int i = 0; i < lanes_; ++i) {
    StmtNode n = s;
    n.value = lane_of(value, i);
    n.mask = lanes_on ? lane_of(lanes_on, i) : lanes_on;
    for (size_t k = 0; k < indices.size(); ++k) n.indices[k] = lane_of(indices[k], i);
    add(std::move(n));
  }
}

void VectorBody::branch(const StmtNode& s) {
  const Expr condition = vector(s.value);
  if (!condition.type().is_vector()) {
    StmtNode n = s;
    n.value = condition;
    n.body.clear();
    n.otherwise.clear();
    emit(s.body, n.body);
    emit(s.otherwise, n.otherwise);
    add(std::move(n));
    return;
  }
  const Expr on = named("on", condition);
  const Expr outer = mask_;
  const bool outer_divergent = divergent_;
  divergent_ = true;
  const auto part = [&](const std::vector<Stmt>& body, const Expr& lanes_on) {
    if (body.empty()) return;
    mask_ = named("mask", outer ? outer & lanes_on : lanes_on);
    for (const Stmt& b : body) statement(*b);
  };
  part(s.body, on);
  part(s.otherwise, logical_not(on));
  mask_ = outer;
  divergent_ = outer_divergent;
}

}  // namespace cuvil::kernel
