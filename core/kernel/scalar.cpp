#include "core/kernel/scalar.h"

#include <array>
#include <cstring>

#include "core/base/error.h"
#include "core/kernel/lane_ops.h"

namespace cuvil::kernel {

LaneFn lane_function(Op op, DType dtype) {
  if (!is_float(dtype)) return lanes::integer_function(op, dtype);
  const LaneFn f = lanes::float_function(op, dtype);
  return f ? f : lanes::math_function(op, dtype);
}

void store_scalar(void* memory, DType dtype, Scalar value) {
  if (is_float(dtype)) {
    cast_function(dtype, DType::f64)(memory, &value.f, nullptr, nullptr, 1);
  } else {
    cast_function(dtype, DType::i64)(memory, &value.i, nullptr, nullptr, 1);
  }
}

Scalar load_scalar(const void* memory, DType dtype) {
  Scalar s;
  if (is_float(dtype)) {
    cast_function(DType::f64, dtype)(&s.f, memory, nullptr, nullptr, 1);
  } else {
    cast_function(DType::i64, dtype)(&s.i, memory, nullptr, nullptr, 1);
  }
  return s;
}

std::optional<Scalar> as_constant(const Expr& e) {
  const ExprNode& n = e->op == Op::broadcast ? *e->args[0] : *e;
  if (n.op == Op::const_int) return Scalar{n.int_value, 0};
  if (n.op == Op::const_float) return Scalar{0, n.float_value};
  return std::nullopt;
}

Expr make_constant(Type type, Scalar value) {
  return is_float(type.dtype) ? const_float(type, value.f) : const_int(type, value.i);
}

Expr fold(Op op, Type result, std::span<const Expr> args) {
  alignas(8) std::array<std::array<unsigned char, 8>, 4> cell{};
  if (args.empty() || args.size() > 3) return {};
  for (size_t i = 0; i < args.size(); ++i) {
    const std::optional<Scalar> value = as_constant(args[i]);
    if (!value) return {};
    store_scalar(cell[i].data(), args[i].type().dtype, *value);
  }
  const LaneFn f = lane_function(op, args.back().type().dtype);
  if (!f) return {};
  f(cell[3].data(), cell[0].data(), cell[1].data(), cell[2].data(), 1);
  return make_constant(result, load_scalar(cell[3].data(), result.dtype));
}

Expr fold_cast(Type to, const Expr& value) {
  const std::optional<Scalar> constant = as_constant(value);
  if (!constant) return {};
  alignas(8) unsigned char from[8], result[8];
  store_scalar(from, value.type().dtype, *constant);
  cast_function(to.dtype, value.type().dtype)(result, from, nullptr, nullptr, 1);
  return make_constant(to.with_lanes(value.type().lanes), load_scalar(result, to.dtype));
}

void reduce_lanes(Op op, DType dtype, void* values, int count) {
  const Op pair = op == Op::reduce_add ? Op::add : op == Op::reduce_max ? Op::max : Op::min;
  const LaneFn f = lane_function(pair, dtype);
  auto* bytes = static_cast<unsigned char*>(values);
  const int size = size_of(dtype);
  for (; count % 2 == 0; count /= 2) f(bytes, bytes, bytes + size * (count / 2), nullptr, count / 2);
  for (int i = 1; i < count; ++i) f(bytes, bytes, bytes + size * i, nullptr, 1);
}

}  // namespace cuvil::kernel
