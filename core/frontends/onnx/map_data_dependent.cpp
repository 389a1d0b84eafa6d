// Operators whose results' sizes depend on data: they set a symbol that has a known bound. And TopK, which needs a
// sort.
#include <limits>

#include "core/frontends/onnx/context.h"

namespace cuvil::frontends::onnx {
namespace {

ir::Value* reshape(OpContext& c, ir::Value* x, Shape shape, std::string_view name = "") {
  return x->type.shape == shape ? x : c.b.add("Reshape", {x}, {{"shape", std::move(shape)}}, name);
}
ir::Value* cast(OpContext& c, ir::Value* x, DType to) {
  return x->type.dtype == to ? x : c.b.add("Cast", {x}, {{"to", to}});
}

void topk(OpContext& c) {
  const int64_t axis = c.axis(c.attr_int("axis", -1), c.rank(0));
  Shape k;
  if (c.opset >= 10) {
    for (Dim& d : c.dims(1, "k")) k.push_back(std::move(d));
  } else {
    k.emplace_back(c.attr_int("k", 0));
  }
  const ir::Node* node = c.b.add_node(
      "TopK", {c.in(0)}, {{"k", k}, {"axis", axis}, {"largest", int64_t{c.attr_int("largest", 1) != 0}}}, c.out_name());
  for (size_t i = 0; i < 2; ++i) c.out(i, node->output(i));
}

ir::Value* nonzero(OpContext& c, ir::Value* x, std::string_view name = "") {
  return c.b.add("NonZero", {x}, c.set_symbol("nonzero", num_elements(x->type.shape)), name);
}
void nonzero_op(OpContext& c) { c.out(0, nonzero(c, c.in(0), c.out_name())); }

/// Slices of x where the condition is true: those whose numbers NonZero gives.
void compress(OpContext& c) {
  ir::Value* x = c.in(0);
  int64_t axis = 0;
  if (c.attribute("axis"))
    axis = c.axis(c.attr_int("axis", 0), c.rank(0));
  else
    x = reshape(c, x, {num_elements(x->type.shape)});
  if (c.rank(1) != 1) c.malformed("Compress: the condition must have one axis");
  ir::Value* found = nonzero(c, c.in(1));
  found = reshape(c, found, {found->type.shape[1]});
  c.out(0, c.b.add("Gather", {x, found}, {{"axis", axis}}, c.out_name()));
}

void unique(OpContext& c) {
  ir::Value* x = c.in(0);
  const Shape shape = x->type.shape;
  Dim outer = 1, slices = num_elements(shape), inner = 1;
  int64_t axis = -1;
  if (c.attribute("axis")) {
    axis = c.axis(c.attr_int("axis", 0), c.rank(0));
    outer = num_elements({shape.begin(), shape.begin() + axis});
    slices = shape[static_cast<size_t>(axis)];
    inner = num_elements({shape.begin() + axis + 1, shape.end()});
  }
  ir::Attributes attributes = c.set_symbol("unique", slices);
  attributes["sorted"] = c.attr_int("sorted", 1);
  const ir::Node* node = c.b.add_node("Unique", {reshape(c, x, {outer, slices, inner})}, std::move(attributes));
  const Dim count = node->output(1)->type.shape[0];
  Shape to{count};
  if (axis >= 0) {
    to = shape;
    to[static_cast<size_t>(axis)] = count;
  }
  c.out(0, reshape(c, node->output(0), to, c.out_name()));
  for (size_t i = 1; i < 4; ++i) c.out(i, node->output(i));
}

void non_max_suppression(OpContext& c) {
  const Shape& scores = c.type(1).shape;
  if (scores.size() != 3) c.malformed("NonMaxSuppression: scores must have three axes");
  // A scalar, or a vector of one element; absent: nothing is selected, anything may overlap, every score counts.
  const auto scalar = [&](size_t i, DType dtype, double fallback) {
    if (!c.has(i)) return c.b.constant(ir::Tensor::scalar(dtype, fallback));
    return reshape(c, cast(c, c.in(i), dtype), {});
  };
  Dim each = scores[2];
  if (!c.has(2))
    each = 0;
  else if (const auto known = c.known(2); known && known->values.size() == 1)
    each = min(each, max(known->values[0], Dim(0)));
  ir::Attributes attributes = c.set_symbol("selected", scores[0] * scores[1] * each);
  attributes["center_point_box"] = c.attr_int("center_point_box", 0);
  const float lowest = -std::numeric_limits<float>::infinity();
  const ir::Node* node = c.b.add_node("NonMaxSuppression",
                                      {c.in(0), c.in(1), scalar(2, DType::i64, 0), scalar(3, DType::f32, 0),
                                       scalar(4, DType::f32, static_cast<double>(lowest))},
                                      std::move(attributes), c.out_name());
  c.out(0, node->output(0));
}

const Mapping kMappings[] = {
    {"TopK", topk},
    {"NonZero", nonzero_op},
    {"Compress", compress},
    {"Unique", unique},
    {"NonMaxSuppression", non_max_suppression},
};

}  // namespace

std::span<const Mapping> data_dependent_mappings() { return kMappings; }

}  // namespace cuvil::frontends::onnx
