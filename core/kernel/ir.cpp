#include "core/kernel/ir.h"

#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/kernel/scalar.h"
#include "core/kernel/verify.h"

namespace cuvil::kernel {
namespace {

constexpr OpInfo kInfo[] = {
#define X(name, text, arity) {#name, text, arity},
    CUVIL_KERNEL_OPS(X)
#undef X
};

Expr node(ExprNode n) { return Expr(std::make_shared<const ExprNode>(std::move(n))); }

bool is_comparison(Op op) { return op >= Op::eq && op <= Op::ge; }

}  // namespace

const OpInfo& info(Op op) { return kInfo[static_cast<int>(op)]; }

std::string Type::str() const {
  std::string s(name_of(dtype));
  return lanes > 1 ? s + "x" + std::to_string(lanes) : s;
}

Var make_var(std::string name, Type type) { return std::make_shared<const VarInfo>(VarInfo{std::move(name), type}); }

Buffer make_buffer(std::string name, Type type, std::vector<Expr> shape, Space space, Access access,
                   std::vector<Expr> strides) {
  return std::make_shared<const BufferInfo>(
      BufferInfo{std::move(name), type, std::move(shape), std::move(strides), space, access});
}

Expr::Expr(int64_t index) : Expr(const_int(kIndex, index)) {}
Expr::Expr(const Var& var) {
  ExprNode n{Op::var, var->type, {}};
  n.variable = var;
  *this = node(std::move(n));
}
Type Expr::type() const { return node_->type; }
bool Expr::is_const_int(int64_t value) const {
  return node_ && node_->op == Op::const_int && node_->int_value == value;
}

namespace {

/// A value as the type holds it: wrapped or rounded.
Scalar as_held(DType dtype, Scalar value) {
  if (dtype == DType::i64 || dtype == DType::u64 || dtype == DType::f64) return value;
  alignas(8) unsigned char memory[8];
  store_scalar(memory, dtype, value);
  return load_scalar(memory, dtype);
}

Expr new_const_int(Type type, int64_t value) {
  ExprNode n{Op::const_int, type.element(), {}};
  n.int_value = as_held(type.dtype, {value, 0}).i;
  return node(std::move(n));
}

/// Small indices are everywhere: one node each.
constexpr int64_t kFewest = -64, kMost = 1024;
const Expr& shared_index(int64_t value) {
  static const std::vector<Expr> table = [] {
    std::vector<Expr> t;
    for (int64_t i = kFewest; i <= kMost; ++i) t.push_back(new_const_int(kIndex, i));
    return t;
  }();
  return table[static_cast<size_t>(value - kFewest)];
}

}  // namespace

Expr const_int(Type type, int64_t value) {
  CUVIL_CHECK(!is_float(type.dtype), "const_int makes integers and bool, not " + type.str());
  if (type == kIndex && value >= kFewest && value <= kMost) return shared_index(value);
  return broadcast(new_const_int(type, value), type.lanes);
}

Expr const_float(Type type, double value) {
  CUVIL_CHECK(is_float(type.dtype), "const_float makes floats, not " + type.str());
  ExprNode n{Op::const_float, type.element(), {}};
  // One NaN: its sign and payload mean nothing, and the text form does not keep them.
  n.float_value = value != value ? std::numeric_limits<double>::quiet_NaN() : as_held(type.dtype, {0, value}).f;
  return broadcast(node(std::move(n)), type.lanes);
}

Expr constant(Type type, double value) {
  if (is_float(type.dtype)) return const_float(type, value);
  if (type.dtype == DType::boolean) return const_int(type, value != 0);
  const Expr e = const_float({DType::f64, 1}, value);
  return broadcast(cast(type.element(), e), type.lanes);
}

Expr load(const Buffer& buffer, std::vector<Expr> indices, int lanes, Expr mask) {
  CUVIL_CHECK(indices.size() == buffer->shape.size(), "buffer " + buffer->name + " has " +
                                                          std::to_string(buffer->shape.size()) +
                                                          " dimensions, indexed by " + std::to_string(indices.size()));
  int gathered = 1;
  for (const Expr& i : indices) gathered = std::max<int>(gathered, i.type().lanes);
  if (buffer->type.is_vector()) lanes = buffer->type.lanes;
  if (gathered > 1) lanes = gathered;
  for (Expr& i : indices)
    if (gathered > 1) i = broadcast(i, gathered);
  ExprNode n{Op::load, buffer->type.with_lanes(lanes), std::move(indices)};
  n.buffer = buffer;
  if (mask) {
    n.has_mask = true;
    n.args.push_back(broadcast(std::move(mask), lanes));
  }
  return node(std::move(n));
}

Expr ramp(Expr base, Expr stride, int lanes) {
  if (lanes == 1) return base;
  CUVIL_CHECK(base.type() == kIndex && stride.type() == kIndex, "a ramp is made of i64 scalars");
  if (stride.is_const_int(0)) return broadcast(std::move(base), lanes);
  const Type type = kIndex.with_lanes(lanes);
  ExprNode n{Op::ramp, type, {std::move(base), std::move(stride)}};
  return node(std::move(n));
}

Expr broadcast(Expr scalar, int lanes) {
  if (lanes <= 1 || scalar.type().lanes == lanes) return scalar;
  CUVIL_CHECK(scalar.type().lanes == 1, "only scalars are broadcast");
  const Type type = scalar.type().with_lanes(lanes);
  return node({Op::broadcast, type, {std::move(scalar)}});
}

Expr lane(Expr vector, int index) {
  if (vector.type().lanes == 1) return vector;
  CUVIL_CHECK(index >= 0 && index < vector.type().lanes, "no such lane");
  if (vector->op == Op::broadcast) return vector->args[0];
  ExprNode n{Op::lane, vector.type().element(), {std::move(vector)}};
  n.int_value = index;
  return node(std::move(n));
}

Expr shuffle(std::vector<Expr> vectors, std::vector<int> lanes) {
  CUVIL_CHECK(!vectors.empty() && vectors.size() <= 2, "a shuffle takes one or two vectors");
  ExprNode n{Op::shuffle, vectors[0].type().with_lanes(static_cast<int>(lanes.size())), std::move(vectors)};
  n.lanes = std::move(lanes);
  return node(std::move(n));
}

namespace {

/// Neutral elements of index arithmetic fold as it is built: schedules are full of it. More is left to simplify().
Expr drop_neutral(Op op, const std::vector<Expr>& a) {
  if (a.size() != 2 || a[0].type() != kIndex) return {};
  switch (op) {
    case Op::add:
      if (a[0].is_const_int(0)) return a[1];
      return a[1].is_const_int(0) ? a[0] : Expr();
    case Op::sub:
      return a[1].is_const_int(0) ? a[0] : Expr();
    case Op::mul:
      if (a[0].is_const_int(1)) return a[1];
      if (a[1].is_const_int(1)) return a[0];
      return a[0].is_const_int(0) || a[1].is_const_int(0) ? Expr(0) : Expr();
    case Op::floordiv:
      return a[1].is_const_int(1) ? a[0] : Expr();
    case Op::floormod:
      return a[1].is_const_int(1) ? Expr(0) : Expr();
    default:
      return {};
  }
}

/// An i64 constant beside an operand of another type was written as a C++ integer: it takes that type.
Expr adopt(const Expr& e, Type type) {
  if (e->op != Op::const_int || e.type() != kIndex || type.dtype == DType::i64) return e;
  return fold_cast(type.element(), e);
}

/// Operators whose operands all have one type (select: but for the condition).
bool is_lane_wise(Op op) { return op >= Op::add && op <= Op::select; }

std::string types_of(const std::vector<Expr>& args) {
  std::string text;
  for (const Expr& a : args) text += (text.empty() ? "" : ", ") + a.type().str();
  return text;
}

}  // namespace

Expr make(Op op, std::vector<Expr> args) {
  const auto arity = static_cast<size_t>(info(op).arity);
  CUVIL_CHECK(info(op).arity > 0 && arity == args.size(),
              "operator " + std::string(info(op).name) + " with " + std::to_string(args.size()) + " operands");
  if (op == Op::reduce_add || op == Op::reduce_max || op == Op::reduce_min) {
    if (args[0].type().lanes == 1) return args[0];
    const Type element = args[0].type().element();
    return node({op, element, std::move(args)});
  }
  if (op == Op::dot) return dot(args[0], args[1], args[2]);
  CUVIL_CHECK(is_lane_wise(op), "operator " + std::string(info(op).name) + " has its own constructor");
  const size_t first = op == Op::select ? 1 : 0;
  Type type = args[first].type();
  for (size_t i = first; i < args.size(); ++i)
    if (args[i]->op != Op::const_int || args[i].type() != kIndex) type = args[i].type();
  int lanes = 1;
  for (const Expr& a : args) lanes = std::max<int>(lanes, a.type().lanes);
  for (size_t i = first; i < args.size(); ++i) args[i] = broadcast(adopt(args[i], type), lanes);
  if (first == 1 && args[0].type().is_vector()) args[0] = broadcast(args[0], lanes);
  for (size_t i = first; i < args.size(); ++i)
    CUVIL_CHECK(args[i].type().dtype == type.dtype && args[i].type().lanes == lanes,
                "operands of " + std::string(info(op).name) + " differ in type: " + types_of(args));
  CUVIL_CHECK(first == 0 || args[0].type().dtype == DType::boolean, "the condition of a select is not bool");
  type = type.with_lanes(lanes);
  if (is_comparison(op)) type.dtype = DType::boolean;
  if (Expr simpler = drop_neutral(op, args)) return simpler;
  if (op == Op::select) {
    if (const std::optional<Scalar> known = as_constant(args[0])) return args[known->i ? 1 : 2];
  }
  if (Expr folded = fold(op, type, args)) return folded;
  return node({op, type, std::move(args)});
}

Expr cast(Type type, Expr value) {
  const Type to = type.with_lanes(value.type().lanes);
  if (to == value.type()) return value;
  if (Expr folded = fold_cast(to, value)) return folded;
  return node({Op::cast, to, {std::move(value)}});
}

Expr bitcast(Type type, Expr value) {
  if (type == value.type()) return value;
  CUVIL_CHECK(size_of(type.dtype) * type.lanes == size_of(value.type().dtype) * value.type().lanes,
              "a bitcast from " + value.type().str() + " to " + type.str());
  if (type.lanes == value.type().lanes && value->op == Op::broadcast)
    return broadcast(bitcast(type.element(), value->args[0]), type.lanes);
  if (const std::optional<Scalar> constant = as_constant(value);
      constant && type.lanes == 1 && !value.type().is_vector()) {
    alignas(8) unsigned char memory[8];
    store_scalar(memory, value.type().dtype, *constant);
    return make_constant(type, load_scalar(memory, type.dtype));
  }
  return node({Op::bitcast, type, {std::move(value)}});
}

Expr dot(Expr acc, Expr a, Expr b) {
  const Type type = acc.type();
  CUVIL_CHECK(a.type().lanes == b.type().lanes && a.type().lanes == (is_float(type.dtype) ? 2 : 4) * type.lanes,
              "a dot of " + types_of({acc, a, b}));
  return node({Op::dot, type, {std::move(acc), std::move(a), std::move(b)}});
}

Expr select(Expr cond, Expr a, Expr b) { return make(Op::select, {std::move(cond), std::move(a), std::move(b)}); }
Expr fma(Expr a, Expr b, Expr c) { return make(Op::fma, {std::move(a), std::move(b), std::move(c)}); }
Expr min(Expr a, Expr b) { return make(Op::min, {std::move(a), std::move(b)}); }
Expr max(Expr a, Expr b) { return make(Op::max, {std::move(a), std::move(b)}); }
Expr floordiv(Expr a, Expr b) { return make(Op::floordiv, {std::move(a), std::move(b)}); }
Expr ceildiv(Expr a, Expr b) { return floordiv(a + (b - Expr(1)), b); }
Expr operator+(Expr a, Expr b) { return make(Op::add, {std::move(a), std::move(b)}); }
Expr operator-(Expr a, Expr b) { return make(Op::sub, {std::move(a), std::move(b)}); }
Expr operator*(Expr a, Expr b) { return make(Op::mul, {std::move(a), std::move(b)}); }
Expr operator/(Expr a, Expr b) { return make(Op::div, {std::move(a), std::move(b)}); }
Expr operator%(Expr a, Expr b) { return make(Op::floormod, {std::move(a), std::move(b)}); }
Expr operator-(Expr a) { return make(Op::neg, {std::move(a)}); }
Expr operator<(Expr a, Expr b) { return make(Op::lt, {std::move(a), std::move(b)}); }
Expr operator<=(Expr a, Expr b) { return make(Op::le, {std::move(a), std::move(b)}); }
Expr operator>(Expr a, Expr b) { return make(Op::gt, {std::move(a), std::move(b)}); }
Expr operator>=(Expr a, Expr b) { return make(Op::ge, {std::move(a), std::move(b)}); }
Expr operator==(Expr a, Expr b) { return make(Op::eq, {std::move(a), std::move(b)}); }
Expr operator!=(Expr a, Expr b) { return make(Op::ne, {std::move(a), std::move(b)}); }
Expr operator&(Expr a, Expr b) { return make(Op::bit_and, {std::move(a), std::move(b)}); }
Expr operator|(Expr a, Expr b) { return make(Op::bit_or, {std::move(a), std::move(b)}); }
Expr logical_not(Expr a) { return make(Op::bit_not, {std::move(a)}); }
Expr lane_mask(Expr base, Expr end, int lanes) {
  return ramp(std::move(base), 1, lanes) < broadcast(std::move(end), lanes);
}

Builder::Builder(std::string name) { kernel_.name = std::move(name); }

void Builder::add(StmtNode n) {
  CUVIL_CHECK(!open_.empty(), "statements are built inside a phase");
  open_.back()->push_back(std::make_shared<const StmtNode>(std::move(n)));
}

Expr Builder::dim(std::string name) {
  kernel_.dims.push_back(make_var(std::move(name)));
  return {kernel_.dims.back()};
}

Buffer Builder::param(std::string name, Type type, std::vector<Expr> shape, Access access, std::vector<Expr> strides) {
  kernel_.params.push_back(
      make_buffer(std::move(name), type, std::move(shape), Space::global, access, std::move(strides)));
  return kernel_.params.back();
}

void Builder::phase(Expr tasks, const std::function<void(Expr)>& body) {
  CUVIL_CHECK(open_.empty(), "phases do not nest");
  Phase p{make_var("t"), std::move(tasks), {}};
  open_.push_back(&p.body);
  body(Expr(p.task));
  open_.pop_back();
  kernel_.phases.push_back(std::move(p));
}

void Builder::loop(std::string name, Expr begin, Expr end, LoopKind kind, const std::function<void(Expr)>& body,
                   int64_t step) {
  StmtNode n{StmtKind::loop};
  n.variable = make_var(std::move(name));
  n.begin = std::move(begin);
  n.end = std::move(end);
  n.step = step;
  n.loop = kind;
  open_.push_back(&n.body);
  body(Expr(n.variable));
  open_.pop_back();
  add(std::move(n));
}

Buffer Builder::alloc(std::string name, Type type, std::vector<Expr> shape, Space space) {
  StmtNode n{StmtKind::alloc};
  n.buffer = make_buffer(std::move(name), type, std::move(shape), space);
  Buffer b = n.buffer;
  add(std::move(n));
  return b;
}

Expr Builder::let(std::string name, Expr value) {
  if (value->args.empty() && value->op != Op::load) return value;  // a constant or a variable names itself
  StmtNode n{StmtKind::let};
  n.variable = make_var(std::move(name), value.type());
  n.value = std::move(value);
  Expr e(n.variable);
  add(std::move(n));
  return e;
}

void Builder::store(const Buffer& buffer, std::vector<Expr> indices, Expr value, Expr mask) {
  CUVIL_CHECK(indices.size() == buffer->shape.size(),
              "store to buffer " + buffer->name + " has too few or many indices");
  StmtNode n{StmtKind::store};
  n.buffer = buffer;
  n.indices = std::move(indices);
  int scattered = 1;
  for (const Expr& i : n.indices) scattered = std::max<int>(scattered, i.type().lanes);
  for (Expr& i : n.indices) i = broadcast(i, scattered);
  n.value = broadcast(broadcast(adopt(value, buffer->type), buffer->type.lanes), scattered);
  if (mask) n.mask = broadcast(std::move(mask), n.value.type().lanes);
  add(std::move(n));
}

void Builder::branch(Expr condition, const std::function<void()>& then, const std::function<void()>& otherwise) {
  StmtNode n{StmtKind::branch};
  n.value = std::move(condition);
  open_.push_back(&n.body);
  then();
  open_.back() = &n.otherwise;
  if (otherwise) otherwise();
  open_.pop_back();
  add(std::move(n));
}

void Builder::prefetch(const Buffer& buffer, std::vector<Expr> indices, int level) {
  StmtNode n{StmtKind::prefetch};
  n.buffer = buffer;
  n.indices = std::move(indices);
  n.code = level;
  add(std::move(n));
}

void Builder::barrier() { add(StmtNode{StmtKind::barrier}); }

void Builder::fail(int64_t code) {
  StmtNode n{StmtKind::fail};
  n.code = code;
  add(std::move(n));
}

Kernel Builder::finish() {
  CUVIL_CHECK(open_.empty(), "finish() inside a phase");
#ifndef NDEBUG
  verify(kernel_);
#endif
  return std::move(kernel_);
}

}  // namespace cuvil::kernel
