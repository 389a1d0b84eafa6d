// Operators that only deal with shapes: they become views, or vanish into known integers.
#include <algorithm>

#include "core/frontends/onnx/context.h"

namespace cuvil::frontends::onnx {
namespace {

ir::Value* reshape(OpContext& c, ir::Value* x, Shape shape, std::string_view name) {
  return c.b.add("Reshape", {x}, {{"shape", std::move(shape)}}, name);
}

void shape_op(OpContext& c) {
  const Shape& shape = c.type(0).shape;
  const auto n = static_cast<int64_t>(shape.size());
  auto clamp = [&](int64_t v) { return std::clamp(v < 0 ? v + n : v, int64_t{0}, n); };
  const int64_t begin = clamp(c.attr_int("start", 0)), end = clamp(c.attr_int("end", n));
  KnownInts k;
  for (int64_t i = begin; i < end; ++i) k.values.push_back(shape[static_cast<size_t>(i)]);
  c.out_known(0, std::move(k));
}

void size_op(OpContext& c) { c.out_known(0, {{num_elements(c.type(0).shape)}, true, DType::i64}); }

void reshape_op(OpContext& c) {
  const std::vector<Dim> want = c.dims(1, "the new shape");
  // Known integers stay known where they stay a number or a list.
  if (auto k = c.known(0); k && !c.constant(0)) {
    const auto count = static_cast<int64_t>(k->values.size());
    const bool list = want.size() == 1 && (want[0] == Dim(-1) || want[0] == Dim(count));
    if (list || (want.empty() && count == 1)) {
      k->scalar = want.empty();
      return c.out_known(0, std::move(*k));
    }
  }
  const Shape& from = c.type(0).shape;
  const bool zero_is_zero = c.attr_int("allowzero", 0) != 0;
  Shape to;
  int unknown = -1;
  for (size_t i = 0; i < want.size(); ++i) {
    if (want[i] == Dim(-1)) {
      if (unknown >= 0) c.malformed("Reshape has two dimensions of -1");
      unknown = static_cast<int>(i);
      to.emplace_back(1);
    } else if (want[i] == Dim(0) && !zero_is_zero) {
      if (i >= from.size()) c.malformed("Reshape copies dimension " + std::to_string(i) + " that its input lacks");
      to.push_back(from[i]);
    } else {
      to.push_back(want[i]);
    }
  }
  if (unknown >= 0) {
    const Dim total = num_elements(from), rest = num_elements(to);
    if (rest == Dim(0)) c.malformed("Reshape cannot infer -1 beside a dimension of 0");
    if (total.is_const() && rest.is_const() && total.value() % rest.value() != 0)
      c.malformed("Reshape of " + to_string(from) + " cannot be divided into " + to_string(to));
    to[static_cast<size_t>(unknown)] = floordiv(total, rest);
  }
  c.out(0, reshape(c, c.in(0), std::move(to), c.out_name()));
}

/// Axes come as an attribute before opset 13, then as an input.
std::optional<std::vector<int64_t>> axes_of(OpContext& c) {
  if (c.opset >= 13) return c.has(1) ? std::optional(c.ints(1, "axes")) : std::nullopt;
  return c.attribute("axes") ? std::optional(c.attr_ints("axes", {})) : std::nullopt;
}

void squeeze(OpContext& c) {
  const std::optional<std::vector<int64_t>> axes = axes_of(c);
  if (auto k = c.known(0); k && !c.constant(0) && !k->scalar && k->values.size() == 1) {
    k->scalar = true;
    return c.out_known(0, std::move(*k));
  }
  const Shape& from = c.type(0).shape;
  std::vector<bool> drop(from.size(), false);
  if (axes)
    for (int64_t a : *axes) drop[static_cast<size_t>(c.axis(a, c.rank(0)))] = true;
  Shape to;
  for (size_t i = 0; i < from.size(); ++i) {
    if (!axes && from[i] == Dim(1)) continue;
    if (drop[i]) {
      if (from[i].is_const() && from[i].value() != 1)
        c.malformed("Squeeze of axis " + std::to_string(i) + ", whose extent is " + from[i].str());
      continue;
    }
    to.push_back(from[i]);
  }
  c.out(0, reshape(c, c.in(0), std::move(to), c.out_name()));
}

void unsqueeze(OpContext& c) {
  const std::optional<std::vector<int64_t>> axes = axes_of(c);
  if (!axes) c.malformed("Unsqueeze lacks its axes");
  if (auto k = c.known(0); k && !c.constant(0) && k->scalar && axes->size() == 1) {
    k->scalar = false;
    return c.out_known(0, std::move(*k));
  }
  const Shape& from = c.type(0).shape;
  const int rank = c.rank(0) + static_cast<int>(axes->size());
  std::vector<bool> is_new(static_cast<size_t>(rank), false);
  for (int64_t a : *axes) {
    const auto i = static_cast<size_t>(c.axis(a, rank));
    if (is_new[i]) c.malformed("Unsqueeze names axis " + std::to_string(a) + " twice");
    is_new[i] = true;
  }
  Shape to;
  size_t next = 0;
  for (int i = 0; i < rank; ++i) to.push_back(is_new[static_cast<size_t>(i)] ? Dim(1) : from[next++]);
  c.out(0, reshape(c, c.in(0), std::move(to), c.out_name()));
}

void flatten(OpContext& c) {
  const Shape& from = c.type(0).shape;
  const auto rank = static_cast<int64_t>(from.size());
  int64_t axis = c.attr_int("axis", 1);
  if (axis < -rank || axis > rank) c.malformed("Flatten: axis " + std::to_string(axis) + " does not fit");
  if (axis < 0) axis += rank;
  const auto at = from.begin() + axis;
  c.out(0, reshape(c, c.in(0), {num_elements({from.begin(), at}), num_elements({at, from.end()})}, c.out_name()));
}

void constant(OpContext& c) {
  if (auto t = c.attr_tensor("value")) return c.out(0, c.b.constant(*t, c.out_name()));
  if (c.attribute("value_int"))
    return c.out(0, c.b.constant(ir::Tensor::scalar(DType::i64, double(c.attr_int("value_int", 0))), c.out_name()));
  if (c.attribute("value_ints"))
    return c.out(0, c.b.constant(ir::Tensor::from_ints(c.attr_ints("value_ints", {})), c.out_name()));
  if (c.attribute("value_float"))
    return c.out(0, c.b.constant(ir::Tensor::scalar(DType::f32, c.attr_float("value_float", 0)), c.out_name()));
  if (c.attribute("value_floats")) {
    const std::vector<float>& v = c.attribute("value_floats")->floats;
    return c.out(0, c.b.constant(ir::Tensor::from_floats({Dim(int64_t(v.size()))}, v), c.out_name()));
  }
  c.unsupported("Constant of a kind that is not a dense numeric tensor");
}

void constant_of_shape(OpContext& c) {
  const Shape shape = c.dims(0, "the shape");
  ir::Tensor fill = c.attr_tensor("value").value_or(ir::Tensor::scalar(DType::f32, 0));
  fill.type.shape.clear();
  ir::Value* scalar = c.b.constant(fill);
  c.out(0, c.b.add("Expand", {scalar}, {{"shape", shape}}, c.out_name()));
}

void expand(OpContext& c) {
  // Expand broadcasts both ways: a 1 in the wanted shape keeps the input's extent.
  const std::vector<Dim> want = c.dims(1, "the shape");
  const Shape& from = c.type(0).shape;
  const size_t rank = std::max(want.size(), from.size());
  Shape to(rank, Dim(1));
  for (size_t i = 0; i < rank; ++i) {
    const Dim a = i < from.size() ? from[from.size() - 1 - i] : Dim(1);
    const Dim w = i < want.size() ? want[want.size() - 1 - i] : Dim(1);
    to[rank - 1 - i] = w == Dim(1) ? a : w;
  }
  c.out(0, c.b.add("Expand", {c.in(0)}, {{"shape", to}}, c.out_name()));
}

const Mapping kMappings[] = {
    {"Shape", shape_op},      {"Size", size_op},    {"Reshape", reshape_op}, {"Squeeze", squeeze},
    {"Unsqueeze", unsqueeze}, {"Flatten", flatten}, {"Constant", constant},  {"ConstantOfShape", constant_of_shape},
    {"Expand", expand},
};

}  // namespace

std::span<const Mapping> shape_mappings() { return kMappings; }

}  // namespace cuvil::frontends::onnx
