#include "core/kernel/expr_rules.h"

#include <bit>
#include <cmath>

#include "core/kernel/scalar.h"

namespace cuvil::kernel {
namespace {

std::string name_of_op(const ExprNode& n) { return std::string(info(n.op).name); }

std::string constant_rule(const ExprNode& n) {
  const bool is_int_constant = n.op == Op::const_int;
  if (n.type.is_vector()) return "a constant is a scalar; a vector of them is a broadcast";
  if (is_float(n.type.dtype) == is_int_constant) return name_of_op(n) + " of type " + n.type.str();
  alignas(8) unsigned char memory[8];
  store_scalar(memory, n.type.dtype, {n.int_value, n.float_value});
  const Scalar held = load_scalar(memory, n.type.dtype);
  const bool same = is_int_constant ? held.i == n.int_value
                                    : held.f == n.float_value || (std::isnan(held.f) && std::isnan(n.float_value));
  return same ? "" : "a constant that " + n.type.str() + " cannot hold";
}

std::string lane_wise_rule(const ExprNode& n) {
  const Type operand = n.args.back().type();
  for (size_t i = n.op == Op::select ? 1 : 0; i < n.args.size(); ++i)
    if (!(n.args[i].type() == operand))
      return "operands of " + name_of_op(n) + " differ: " + n.args[i].type().str() + " and " + operand.str();
  if (n.op == Op::select) {
    const Type cond = n.args[0].type();
    if (cond.dtype != DType::boolean || (cond.is_vector() && cond.lanes != operand.lanes))
      return "the condition of a select of " + operand.str() + " is " + cond.str();
  }
  if (!lane_function(n.op, operand.dtype)) return name_of_op(n) + " is not defined for " + operand.str();
  const bool compares = n.op >= Op::eq && n.op <= Op::ge;
  const Type result{compares ? DType::boolean : operand.dtype, operand.lanes};
  return n.type == result ? "" : name_of_op(n) + " of " + operand.str() + " has type " + n.type.str();
}

std::string shuffle_rule(const ExprNode& n) {
  if (n.args.empty() || n.args.size() > 2) return "shuffle takes one or two vectors";
  const Type from = n.args[0].type();
  for (const Expr& a : n.args)
    if (!(a.type() == from)) return "shuffle of " + from.str() + " and " + a.type().str();
  if (!(n.type == from.with_lanes(n.type.lanes)) || n.lanes.size() != n.type.lanes)
    return "shuffle of " + from.str() + " with " + std::to_string(n.lanes.size()) + " lanes has type " + n.type.str();
  for (int i : n.lanes)
    if (i < 0 || i >= static_cast<int>(n.args.size()) * from.lanes)
      return "shuffle picks lane " + std::to_string(i) + " of " + std::to_string(n.args.size()) + " x " + from.str();
  return "";
}

std::string dot_rule(const ExprNode& n) {
  const Type acc = n.args[0].type(), a = n.args[1].type(), b = n.args[2].type();
  const bool bytes = acc.dtype == DType::i32 && (a.dtype == DType::u8 || a.dtype == DType::i8) && b.dtype == DType::i8;
  const bool halves = acc.dtype == DType::f32 && a.dtype == DType::bf16 && b.dtype == DType::bf16;
  const int group = bytes ? 4 : 2;
  if ((!bytes && !halves) || a.lanes != b.lanes || a.lanes != group * acc.lanes || !(n.type == acc))
    return "dot(" + acc.str() + ", " + a.str() + ", " + b.str() + ") is neither i32 += 4 x i8 nor f32 += 2 x bf16";
  return "";
}

}  // namespace

std::string broken_access_rule(const BufferInfo& buffer, std::span<const Expr> indices, Type value, const Expr& mask) {
  const std::string what = "buffer " + buffer.name;
  if (indices.size() != buffer.shape.size())
    return what + " has " + std::to_string(buffer.shape.size()) + " dimensions and " + std::to_string(indices.size()) +
           " indices";
  int gathered = 1;
  for (const Expr& i : indices) {
    if (i.type().dtype != DType::i64) return what + " is indexed by " + i.type().str() + ", not i64";
    if (i.type().lanes != indices[0].type().lanes) return what + ": indices are all scalars or all of equal lanes";
    gathered = i.type().lanes;
  }
  if (value.dtype != buffer.type.dtype) return what + " holds " + buffer.type.str() + ", the value is " + value.str();
  if (buffer.type.is_vector()) {
    if (gathered > 1 || !(value == buffer.type))
      return what + " holds " + buffer.type.str() + ": accesses are of whole elements by scalar indices";
  } else if (gathered > 1) {
    if (value.lanes != gathered)
      return what + ": " + std::to_string(gathered) + " indices for a value of type " + value.str();
  } else if (value.is_vector()) {
    if (indices.empty()) return what + " has no dimension along which a vector could lie";
    if (!buffer.strides.empty() && !buffer.strides.back().is_const_int(1))
      return what + ": a vector needs stride 1 in the last dimension";
  }
  if (mask && !(mask.type() == kBool.with_lanes(value.lanes)))
    return what + ": the mask of a value of type " + value.str() + " is " + mask.type().str();
  return "";
}

std::string broken_rule(const ExprNode& n) {
  const int arity = info(n.op).arity;
  for (const Expr& a : n.args)
    if (!a) return name_of_op(n) + " misses an operand";
  if (arity >= 0 && n.args.size() != static_cast<size_t>(arity))
    return name_of_op(n) + " with " + std::to_string(n.args.size()) + " operands";
  if (n.type.lanes < 1 || n.type.lanes > kMaxLanes)
    return "a value has 1 to " + std::to_string(kMaxLanes) + " lanes, not " + std::to_string(n.type.lanes);
  switch (n.op) {
    case Op::const_int:
    case Op::const_float:
      return constant_rule(n);
    case Op::var:
      if (!n.variable) return "a variable without identity";
      return n.type == n.variable->type ? "" : "variable " + n.variable->name + " is read as " + n.type.str();
    case Op::load: {
      if (!n.buffer) return "a load without buffer";
      if (n.has_mask && n.args.empty()) return "a load misses its mask";
      const std::span<const Expr> args(n.args);
      return broken_access_rule(*n.buffer, args.first(args.size() - (n.has_mask ? 1 : 0)), n.type,
                                n.has_mask ? n.args.back() : Expr());
    }
    case Op::ramp:
      if (!(n.args[0].type() == kIndex) || !(n.args[1].type() == kIndex) || !n.type.is_vector() ||
          n.type.dtype != DType::i64)
        return "ramp makes an i64 vector of two i64 scalars";
      return "";
    case Op::broadcast:
      if (n.args[0].type().is_vector() || !n.type.is_vector() || n.args[0].type().dtype != n.type.dtype)
        return "broadcast from " + n.args[0].type().str() + " to " + n.type.str();
      return "";
    case Op::lane:
      if (!n.args[0].type().is_vector() || n.int_value < 0 || n.int_value >= n.args[0].type().lanes ||
          !(n.type == n.args[0].type().element()))
        return "lane " + std::to_string(n.int_value) + " of " + n.args[0].type().str();
      return "";
    case Op::shuffle:
      return shuffle_rule(n);
    case Op::reduce_add:
    case Op::reduce_max:
    case Op::reduce_min:
      if (!n.args[0].type().is_vector() || n.type.dtype == DType::boolean || !(n.type == n.args[0].type().element()))
        return name_of_op(n) + " from " + n.args[0].type().str() + " to " + n.type.str();
      return "";
    case Op::cast:
      return n.type.lanes == n.args[0].type().lanes ? "" : "cast keeps the number of lanes";
    case Op::bitcast: {
      const Type from = n.args[0].type();
      if (from.dtype == DType::boolean || n.type.dtype == DType::boolean ||
          size_of(from.dtype) * from.lanes != size_of(n.type.dtype) * n.type.lanes)
        return "bitcast from " + from.str() + " to " + n.type.str();
      return "";
    }
    case Op::dot:
      return dot_rule(n);
    default:
      return lane_wise_rule(n);
  }
}

}  // namespace cuvil::kernel
