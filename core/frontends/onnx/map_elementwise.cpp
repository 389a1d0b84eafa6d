// Elementwise operators: most have the same name and meaning in CIR.
#include "core/frontends/onnx/context.h"

namespace cuvil::frontends::onnx {
namespace {

ir::Value* emit(OpContext& c, std::string_view op, std::vector<ir::Value*> inputs, ir::Attributes attributes = {}) {
  return c.b.add(op, std::move(inputs), std::move(attributes), c.out_name());
}

void unary(OpContext& c) { c.out(0, emit(c, c.proto.op_type, {c.in(0)})); }
void binary(OpContext& c) { c.out(0, emit(c, c.proto.op_type, {c.in(0), c.in(1)})); }

/// Arithmetic on known integers stays known; anything else becomes a node.
void arithmetic(OpContext& c) {
  const auto a = c.known(0), b = c.known(1);
  const bool symbolic = a && b && (c.from_shapes(0) || c.from_shapes(1));
  if (symbolic && (a->values.size() == b->values.size() || a->scalar || b->scalar || a->values.size() == 1 ||
                   b->values.size() == 1)) {
    KnownInts r{{}, a->scalar && b->scalar, a->dtype};
    const size_t n = std::max(a->values.size(), b->values.size());
    bool exact = true;
    for (size_t i = 0; i < n && exact; ++i) {
      const Dim& x = a->values[a->values.size() == 1 ? 0 : i];
      const Dim& y = b->values[b->values.size() == 1 ? 0 : i];
      if (c.proto.op_type == "Add")
        r.values.push_back(x + y);
      else if (c.proto.op_type == "Sub")
        r.values.push_back(x - y);
      else if (c.proto.op_type == "Mul")
        r.values.push_back(x * y);
      else if (y.is_const() && y.value() > 0 && x.lower_bound().value_or(-1) >= 0)
        r.values.push_back(floordiv(x, y));
      else
        exact = false;  // division that may truncate a negative number
    }
    if (exact) return c.out_known(0, std::move(r));
  }
  binary(c);
}

/// Min, Max, Sum, Mean take any number of inputs.
ir::Value* chain(OpContext& c, std::string_view op) {
  ir::Value* v = c.in(0);
  for (size_t i = 1; i < c.num_inputs(); ++i)
    v = c.b.add(op, {v, c.in(i)}, {}, i + 1 == c.num_inputs() ? c.out_name() : "");
  return v;
}
void min(OpContext& c) { c.out(0, chain(c, "Min")); }
void max(OpContext& c) { c.out(0, chain(c, "Max")); }
void sum(OpContext& c) { c.out(0, chain(c, "Add")); }
void mean(OpContext& c) {
  ir::Value* v = chain(c, "Add");
  const double n = static_cast<double>(c.num_inputs());
  c.out(0, emit(c, "Div", {v, c.b.constant(ir::Tensor::scalar(v->type.dtype, n))}));
}

/// An operator with one float attribute of the same name.
template <char const* kName, int kPercent>
void with_float(OpContext& c) {
  c.out(0, emit(c, c.proto.op_type, {c.in(0)}, {{kName, c.attr_float(kName, kPercent / 100.0)}}));
}
constexpr char kAlpha[] = "alpha";

void selu(OpContext& c) {
  c.out(0, emit(c, "Selu", {c.in(0)},
                {{"alpha", c.attr_float("alpha", 1.67326319217681884765625)},
                 {"gamma", c.attr_float("gamma", 1.05070102214813232421875)}}));
}
void hard_sigmoid(OpContext& c) {
  c.out(0, emit(c, "HardSigmoid", {c.in(0)},
                {{"alpha", c.attr_float("alpha", 0.2)}, {"beta", c.attr_float("beta", 0.5)}}));
}
void shrink(OpContext& c) {
  c.out(0, emit(c, "Shrink", {c.in(0)}, {{"lambd", c.attr_float("lambd", 0.5)}, {"bias", c.attr_float("bias", 0)}}));
}
void gelu(OpContext& c) {
  c.out(0, emit(c, "Gelu", {c.in(0)}, {{"approximate", c.attr_string("approximate", "none")}}));
}
void swish(OpContext& c) { c.out(0, emit(c, "Silu", {c.in(0)}, {{"alpha", c.attr_float("alpha", 1.0)}})); }

/// Before opset 11 the bounds are attributes, then inputs; each may be absent.
void clip(OpContext& c) {
  ir::Value* x = c.in(0);
  auto bound = [&](size_t i, const char* name) -> ir::Value* {
    if (c.opset >= 11) return c.in_or_null(i);
    const ProtoAttribute* a = c.attribute(name);
    return a ? c.b.constant(ir::Tensor::scalar(x->type.dtype, a->f)) : nullptr;
  };
  c.out(0, emit(c, "Clip", {x, bound(1, "min"), bound(2, "max")}));
}

void cast(OpContext& c) {
  const auto to = static_cast<int32_t>(c.attr_int("to", 0));
  const std::optional<DType> dtype = dtype_of(to);
  if (!dtype) c.unsupported("Cast to " + onnx_type_name(to));
  if (auto k = c.known(0); k && !c.constant(0) && is_int(*dtype) && size_of(*dtype) >= 4) {
    k->dtype = *dtype;
    return c.out_known(0, std::move(*k));
  }
  c.out(0, emit(c, "Cast", {c.in(0)}, {{"to", *dtype}}));
}
/// Integers to whole powers are exact; to broken ones they go through f32.
void power(OpContext& c) {
  ir::Value *a = c.in(0), *b = c.in(1);
  const DType t = a->type.dtype;
  if (!is_int(t)) return binary(c);
  if (!is_float(b->type.dtype)) return c.out(0, emit(c, "IntegerPow", {a, b}));
  const auto cast = [&](ir::Value* v, DType to) { return c.b.add("Cast", {v}, {{"to", to}}); };
  ir::Value* whole = cast(b, DType::i64);
  ir::Value* is_whole = c.b.add("Equal", {cast(whole, b->type.dtype), b});
  ir::Value* broken = c.b.add("Pow", {cast(a, DType::f32), cast(b, DType::f32)});
  c.out(0, emit(c, "Where", {is_whole, c.b.add("IntegerPow", {a, whole}), cast(broken, t)}));
}

void bit_cast(OpContext& c) {
  const auto number = static_cast<int32_t>(c.attr_int("to", 0));
  const std::optional<DType> to = dtype_of(number);
  if (!to) c.unsupported("BitCast to " + onnx_type_name(number));
  c.out(0, c.b.add("BitCast", {c.in(0)}, {{"to", *to}}, c.out_name()));
}
void cast_like(OpContext& c) { c.out(0, emit(c, "Cast", {c.in(0)}, {{"to", c.type(1).dtype}})); }

void identity(OpContext& c) {
  if (auto k = c.known(0); k && !c.constant(0)) return c.out_known(0, std::move(*k));
  unary(c);
}
/// In inference, or where nothing is dropped, Dropout passes its input on and the mask is all true.
void dropout(OpContext& c) {
  if (c.opset >= 12 && c.has(2) && c.number(2, "the mode") != 0) {
    const double ratio = c.has(1) ? c.number(1, "the ratio") : 0.5;
    if (ratio != 0) c.unsupported("Dropout in training mode: its result is random");
  }
  c.out(0, emit(c, "Identity", {c.in(0)}));
  if (c.wants(1)) {
    ir::Value* yes = c.b.constant(ir::Tensor::scalar(DType::boolean, 1));
    c.out(1, c.b.add("Expand", {yes}, {{"shape", c.type(0).shape}}, c.out_name(1)));
  }
}

void mod(OpContext& c) { c.out(0, emit(c, "Mod", {c.in(0), c.in(1)}, {{"fmod", c.attr_int("fmod", 0)}})); }
void is_inf(OpContext& c) {
  c.out(0, emit(c, "IsInf", {c.in(0)},
                {{"detect_negative", c.attr_int("detect_negative", 1)},
                 {"detect_positive", c.attr_int("detect_positive", 1)}}));
}
void bit_shift(OpContext& c) {
  c.out(0, emit(c, "BitShift", {c.in(0), c.in(1)}, {{"direction", c.attr_string("direction", "")}}));
}
void where(OpContext& c) { c.out(0, emit(c, "Where", {c.in(0), c.in(1), c.in(2)})); }

const Mapping kMappings[] = {
    {"Abs", unary},
    {"Acos", unary},
    {"Acosh", unary},
    {"Asin", unary},
    {"Asinh", unary},
    {"Atan", unary},
    {"Atanh", unary},
    {"Ceil", unary},
    {"Cos", unary},
    {"Cosh", unary},
    {"Erf", unary},
    {"Exp", unary},
    {"Floor", unary},
    {"HardSwish", unary},
    {"IsNaN", unary},
    {"Log", unary},
    {"Mish", unary},
    {"Neg", unary},
    {"Not", unary},
    {"Reciprocal", unary},
    {"Relu", unary},
    {"Round", unary},
    {"Sigmoid", unary},
    {"Sign", unary},
    {"Sin", unary},
    {"Sinh", unary},
    {"Softplus", unary},
    {"Softsign", unary},
    {"Sqrt", unary},
    {"Tan", unary},
    {"Tanh", unary},
    {"BitwiseNot", unary},
    {"Add", arithmetic},
    {"Sub", arithmetic},
    {"Mul", arithmetic},
    {"Div", arithmetic},
    {"And", binary},
    {"Or", binary},
    {"Xor", binary},
    {"BitwiseAnd", binary},
    {"BitwiseOr", binary},
    {"BitwiseXor", binary},
    {"Equal", binary},
    {"Less", binary},
    {"LessOrEqual", binary},
    {"Greater", binary},
    {"GreaterOrEqual", binary},
    {"Pow", power},
    {"PRelu", binary},
    {"Min", min},
    {"Max", max},
    {"Sum", sum},
    {"Mean", mean},
    {"LeakyRelu", with_float<kAlpha, 1>},
    {"Elu", with_float<kAlpha, 100>},
    {"Celu", with_float<kAlpha, 100>},
    {"ThresholdedRelu", with_float<kAlpha, 100>},
    {"Selu", selu},
    {"HardSigmoid", hard_sigmoid},
    {"Shrink", shrink},
    {"Gelu", gelu},
    {"Swish", swish},
    {"Clip", clip},
    {"BitCast", bit_cast},
    {"Cast", cast},
    {"CastLike", cast_like},
    {"Identity", identity},
    {"Dropout", dropout},
    {"Mod", mod},
    {"IsInf", is_inf},
    {"BitShift", bit_shift},
    {"Where", where},
};

}  // namespace

std::span<const Mapping> elementwise_mappings() { return kMappings; }

}  // namespace cuvil::frontends::onnx
