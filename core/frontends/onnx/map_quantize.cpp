// Quantization: integers with scales and zero points, spelled out in arithmetic that fuses. Integer sums are exact;
// scaling is done in f32, rounding is to nearest even, conversion to integers saturates.
#include "core/frontends/onnx/map_quantize.h"

#include <algorithm>
#include <limits>

namespace cuvil::frontends::onnx {
namespace {

using Ints = std::vector<int64_t>;

ir::Value* cast(OpContext& c, ir::Value* x, DType to, std::string_view name = "") {
  return x->type.dtype == to ? x : c.b.add("Cast", {x}, {{"to", to}}, name);
}
ir::Value* reshape(OpContext& c, ir::Value* x, Shape shape) {
  return x->type.shape == shape ? x : c.b.add("Reshape", {x}, {{"shape", std::move(shape)}});
}
ir::Value* number(OpContext& c, DType t, double v) { return c.b.constant(ir::Tensor::scalar(t, v)); }

struct Range {
  double low, high;
};
Range range_of(OpContext& c, DType t) {
  switch (t) {
    case DType::u8:
      return {0, 255};
    case DType::i8:
      return {-128, 127};
    case DType::u16:
      return {0, 65535};
    case DType::i16:
      return {-32768, 32767};
    default:
      c.unsupported(std::string(c.proto.op_type) + " to " + std::string(name_of(t)));
  }
}

/// round(x / scale) + zero, saturated: x and scale are f32; scale (1) and zero may be null.
ir::Value* quantized(OpContext& c, ir::Value* x, ir::Value* scale, ir::Value* zero, DType to, std::string_view name) {
  const Range range = range_of(c, to);
  ir::Value* q = c.b.add("Round", {scale ? c.b.add("Div", {x, scale}) : x});
  if (zero) q = c.b.add("Add", {q, cast(c, zero, DType::f32)});
  q = c.b.add("Clip", {q, number(c, DType::f32, range.low), number(c, DType::f32, range.high)});
  return cast(c, q, to, name);
}

/// A scale or zero point beside x: one number; one per slice of an axis; or one per block of slices, of x's rank.
ir::Value* beside(OpContext& c, ir::Value* v, const ir::Type& x, int64_t axis, int64_t block) {
  if (!v || num_elements(v->type.shape).as_const() == 1) return v ? reshape(c, v, {}) : v;
  const auto a = static_cast<size_t>(axis);
  if (v->type.rank() == 1 && block == 0) {
    Shape shape(x.shape.size(), 1);
    shape[a] = v->type.shape[0];
    return reshape(c, v, shape);
  }
  if (v->type.rank() != x.rank() || block <= 0)
    c.malformed(std::string(c.proto.op_type) + ": scale or zero point of shape " + to_string(v->type.shape) +
                " beside " + to_string(x.shape));
  // [.., blocks, ..] -> [.., blocks, block, ..] -> [.., blocks * block, ..], cut to x's extent.
  const Shape from = v->type.shape;
  Shape wide = from, repeated = from, flat = from;
  wide.insert(wide.begin() + axis + 1, 1);
  repeated.insert(repeated.begin() + axis + 1, block);
  flat[a] = from[a] * Dim(block);
  v = c.b.add("Expand", {reshape(c, v, wide)}, {{"shape", repeated}});
  v = reshape(c, v, flat);
  if (flat[a] == x.shape[a]) return v;
  flat[a] = x.shape[a];
  return c.b.add("Slice", {v}, {{"begin", Shape(flat.size(), 0)}, {"size", flat}, {"step", Ints(flat.size(), 1)}});
}

int64_t quantization_axis(OpContext& c) {
  const int rank = c.rank(0);
  const int64_t axis = c.attr_int("axis", 1);
  if (rank == 0 || num_elements(c.type(1).shape).as_const() == 1) return 0;
  return c.axis(axis, rank);
}

void quantize_linear(OpContext& c) {
  DType to = DType::u8;
  if (c.has(2)) {
    to = c.type(2).dtype;
  } else if (const int64_t wanted = c.attr_int("output_dtype", 0)) {
    const std::optional<DType> t = dtype_of(static_cast<int32_t>(wanted));
    if (!t) c.unsupported("QuantizeLinear to " + onnx_type_name(static_cast<int32_t>(wanted)));
    to = *t;
  }
  const ir::Type& x = c.type(0);
  const int64_t axis = quantization_axis(c), block = c.attr_int("block_size", 0);
  ir::Value* scale = cast(c, beside(c, c.in(1), x, axis, block), DType::f32);
  ir::Value* zero = beside(c, c.in_or_null(2), x, axis, block);
  c.out(0, quantized(c, cast(c, c.in(0), DType::f32), scale, zero, to, c.out_name()));
}

void dequantize_linear(OpContext& c) {
  const ir::Type& x = c.type(0);
  if (!is_int(x.dtype)) c.unsupported("DequantizeLinear of " + std::string(name_of(x.dtype)));
  DType to = c.type(1).dtype;
  if (const int64_t wanted = c.attr_int("output_dtype", 0)) {
    const std::optional<DType> t = dtype_of(static_cast<int32_t>(wanted));
    if (!t || !is_float(*t)) c.unsupported("DequantizeLinear to " + onnx_type_name(static_cast<int32_t>(wanted)));
    to = *t;
  }
  const int64_t axis = quantization_axis(c), block = c.attr_int("block_size", 0);
  ir::Value* scale = cast(c, beside(c, c.in(1), x, axis, block), DType::f32);
  ir::Value* value = cast(c, c.in(0), DType::i32);
  if (ir::Value* zero = beside(c, c.in_or_null(2), x, axis, block))
    value = c.b.add("Sub", {value, cast(c, zero, DType::i32)});
  c.out(0, cast(c, c.b.add("Mul", {cast(c, value, DType::f32), scale}), to, c.out_name()));
}

/// u8 over the range of x that includes 0.
void dynamic_quantize_linear(OpContext& c) {
  ir::Value* x = c.in(0);
  Ints axes;
  for (int a = 0; a < c.rank(0); ++a) axes.push_back(a);
  const auto extreme = [&](const char* reduce, const char* with) {
    ir::Value* v = axes.empty() ? x : c.b.add(reduce, {x}, {{"axes", axes}, {"keepdims", int64_t{0}}});
    return c.b.add(with, {v, number(c, DType::f32, 0)});
  };
  ir::Value* high = extreme("ReduceMax", "Max");
  ir::Value* low = extreme("ReduceMin", "Min");
  ir::Value* width = c.b.add("Sub", {high, low});
  ir::Value* scale = c.b.add("Div", {width, number(c, DType::f32, 255)});
  // Of nothing but zeros any scale will do.
  ir::Value* flat = c.b.add("Equal", {width, number(c, DType::f32, 0)});
  scale = c.b.add("Where", {flat, number(c, DType::f32, 1), scale}, {}, c.out_name(1));
  ir::Value* zero = c.b.add("Round", {c.b.add("Div", {c.b.add("Neg", {low}), scale})});
  zero = c.b.add("Clip", {zero, number(c, DType::f32, 0), number(c, DType::f32, 255)});
  zero = cast(c, zero, DType::u8, c.out_name(2));
  c.out(0, quantized(c, x, scale, zero, DType::u8, c.out_name()));
  c.out(1, scale);
  c.out(2, zero);
}

/// One number as a scalar; a vector as numbers of rows, [n, 1, ...] with `behind` axes behind it.
ir::Value* aligned(OpContext& c, ir::Value* v, int behind) {
  if (num_elements(v->type.shape).as_const() == 1) return reshape(c, v, {});
  if (v->type.rank() != 1 || behind == 0) return v;
  Shape shape{v->type.shape[0]};
  shape.resize(static_cast<size_t>(behind) + 1, 1);
  return reshape(c, v, shape);
}

}  // namespace

ir::Value* centred(OpContext& c, size_t i, size_t zero, int behind) {
  ir::Value* x = cast(c, c.in(i), DType::i32);
  ir::Value* z = c.in_or_null(zero);
  return z ? c.b.add("Sub", {x, cast(c, aligned(c, z, behind), DType::i32)}) : x;
}

ir::Value* scale_of(OpContext& c, size_t i, int behind) { return aligned(c, cast(c, c.in(i), DType::f32), behind); }

void requantized(OpContext& c, ir::Value* sums, ir::Value* scales, size_t scale, size_t zero) {
  ir::Value* factor = c.b.add("Div", {scales, scale_of(c, scale, 1)});
  ir::Value* y = c.b.add("Mul", {cast(c, sums, DType::f32), factor});
  const DType to = c.has(zero) ? c.type(zero).dtype : c.type(0).dtype;
  ir::Value* z = c.has(zero) ? aligned(c, c.in(zero), 1) : nullptr;
  c.out(0, quantized(c, y, nullptr, z, to, c.out_name()));
}

namespace {

void matmul_integer(OpContext& c) {
  c.out(0, c.b.add("MatMul", {centred(c, 0, 2, 1), centred(c, 1, 3, 0)}, {}, c.out_name()));
}

void qlinear_matmul(OpContext& c) {
  ir::Value* sums = c.b.add("MatMul", {centred(c, 0, 2, 1), centred(c, 3, 5, 0)});
  requantized(c, sums, c.b.add("Mul", {scale_of(c, 1, 1), scale_of(c, 4, 0)}), 6, 7);
}

const Mapping kMappings[] = {
    {"QuantizeLinear", quantize_linear},
    {"DequantizeLinear", dequantize_linear},
    {"DynamicQuantizeLinear", dynamic_quantize_linear},
    {"MatMulInteger", matmul_integer},
    {"QLinearMatMul", qlinear_matmul},
};

}  // namespace

std::span<const Mapping> quantize_mappings() { return kMappings; }

}  // namespace cuvil::frontends::onnx
