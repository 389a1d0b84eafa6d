#include "core/kernel/ir.h"

#include <algorithm>

#include "core/base/error.h"
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

Expr const_int(Type type, int64_t value) {
  ExprNode n{Op::const_int, type.element(), {}};
  switch (type.dtype) {  // the value as the type holds it
    case DType::i32:
      value = static_cast<int32_t>(value);
      break;
    case DType::i16:
      value = static_cast<int16_t>(value);
      break;
    case DType::i8:
      value = static_cast<int8_t>(value);
      break;
    case DType::u32:
      value = static_cast<uint32_t>(value);
      break;
    case DType::u16:
      value = static_cast<uint16_t>(value);
      break;
    case DType::u8:
      value = static_cast<uint8_t>(value);
      break;
    case DType::boolean:
      value = value != 0;
      break;
    default:
      break;
  }
  n.int_value = value;
  return broadcast(node(std::move(n)), type.lanes);
}

Expr const_float(Type type, double value) {
  CUVIL_CHECK(is_float(type.dtype), "const_float makes floats");
  ExprNode n{Op::const_float, type.element(), {}};
  n.float_value = type.dtype == DType::f32 ? static_cast<double>(static_cast<float>(value)) : value;
  return broadcast(node(std::move(n)), type.lanes);
}

Expr constant(Type type, double value) {
  return is_float(type.dtype) ? const_float(type, value) : const_int(type, static_cast<int64_t>(value));
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
  ExprNode n{Op::ramp, base.type().with_lanes(lanes), {std::move(base), std::move(stride)}};
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
  if (vector->op == Op::broadcast) return vector->args[0];
  ExprNode n{Op::lane, vector.type().element(), {std::move(vector)}};
  n.int_value = index;
  return node(std::move(n));
}

Expr shuffle(std::vector<Expr> vectors, std::vector<int> lanes) {
  ExprNode n{Op::shuffle, vectors[0].type().with_lanes(static_cast<int>(lanes.size())), std::move(vectors)};
  n.lanes = std::move(lanes);
  return node(std::move(n));
}

namespace {

/// Index arithmetic folds as it is built: schedules are full of it. Everything else is left to simplify().
Expr fold_index(Op op, const std::vector<Expr>& a) {
  auto value = [&](size_t i) { return a[i]->int_value; };
  auto is_const = [&](size_t i) { return a[i]->op == Op::const_int; };
  if (a.size() != 2 || a[0].type() != kIndex) return {};
  const bool both = is_const(0) && is_const(1);
  const auto x = both ? static_cast<uint64_t>(value(0)) : 0, y = both ? static_cast<uint64_t>(value(1)) : 0;
  switch (op) {
    case Op::add:
      if (both) return {static_cast<int64_t>(x + y)};
      if (a[0].is_const_int(0)) return a[1];
      if (a[1].is_const_int(0)) return a[0];
      break;
    case Op::sub:
      if (both) return {static_cast<int64_t>(x - y)};
      if (a[1].is_const_int(0)) return a[0];
      break;
    case Op::mul:
      if (both) return {static_cast<int64_t>(x * y)};
      if (a[0].is_const_int(1)) return a[1];
      if (a[1].is_const_int(1)) return a[0];
      if (a[0].is_const_int(0) || a[1].is_const_int(0)) return {int64_t{0}};
      break;
    case Op::floordiv:
    case Op::floormod: {
      if (!is_const(1) || value(1) <= 0) break;
      if (value(1) == 1) return op == Op::floordiv ? a[0] : Expr(int64_t{0});
      if (!both) break;
      int64_t q = value(0) / value(1), r = value(0) % value(1);
      if (r < 0) {
        r += value(1);
        --q;
      }
      return {op == Op::floordiv ? q : r};
    }
    case Op::min:
      if (both) return {std::min(value(0), value(1))};
      break;
    case Op::max:
      if (both) return {std::max(value(0), value(1))};
      break;
    case Op::lt:
      if (both) return const_int(kBool, value(0) < value(1));
      break;
    case Op::le:
      if (both) return const_int(kBool, value(0) <= value(1));
      break;
    case Op::gt:
      if (both) return const_int(kBool, value(0) > value(1));
      break;
    case Op::ge:
      if (both) return const_int(kBool, value(0) >= value(1));
      break;
    case Op::eq:
      if (both) return const_int(kBool, value(0) == value(1));
      break;
    case Op::ne:
      if (both) return const_int(kBool, value(0) != value(1));
      break;
    default:
      break;
  }
  return {};
}

/// An i64 constant beside an operand of another type was written as a C++ integer: it takes that type.
Expr adopt(const Expr& e, Type type) {
  if (e->op != Op::const_int || e.type() != kIndex || type.dtype == DType::i64) return e;
  return constant(type.element(), static_cast<double>(e->int_value));
}

}  // namespace

Expr make(Op op, std::vector<Expr> args) {
  CUVIL_CHECK(info(op).arity == static_cast<int>(args.size()),
              "operator " + std::string(info(op).name) + " with " + std::to_string(args.size()) + " operands");
  if (op == Op::reduce_add || op == Op::reduce_max || op == Op::reduce_min) {
    if (args[0].type().lanes == 1) return args[0];
    const Type element = args[0].type().element();
    return node({op, element, std::move(args)});
  }
  const size_t first = op == Op::select ? 1 : 0;
  Type type = args[first].type();
  for (size_t i = first; i < args.size(); ++i)
    if (args[i]->op != Op::const_int || args[i].type() != kIndex) type = args[i].type();
  int lanes = 1;
  for (const Expr& a : args) lanes = std::max<int>(lanes, a.type().lanes);
  for (size_t i = first; i < args.size(); ++i) {
    args[i] = broadcast(adopt(args[i], type), lanes);
    CUVIL_CHECK(args[i].type().dtype == type.dtype && args[i].type().lanes == lanes,
                "operands of " + std::string(info(op).name) + " are " + args[i].type().str() + " and " + type.str());
  }
  if (Expr folded = fold_index(op, args)) return folded;
  type = type.with_lanes(lanes);
  if (is_comparison(op)) type.dtype = DType::boolean;
  return node({op, type, std::move(args)});
}

Expr cast(Type type, Expr value) {
  const Type to = type.with_lanes(value.type().lanes);
  if (to == value.type()) return value;
  return node({Op::cast, to, {std::move(value)}});
}

Expr bitcast(Type type, Expr value) {
  if (type == value.type()) return value;
  return node({Op::bitcast, type, {std::move(value)}});
}

Expr dot(Expr acc, Expr a, Expr b) {
  const Type type = acc.type();
  return node({Op::dot, type, {std::move(acc), std::move(a), std::move(b)}});
}

Expr select(Expr cond, Expr a, Expr b) {
  if (cond->op == Op::const_int) return cond->int_value ? a : b;
  return make(Op::select, {std::move(cond), std::move(a), std::move(b)});
}
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
  n.value = broadcast(adopt(value, buffer->type), buffer->type.lanes);
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
