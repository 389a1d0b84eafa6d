// Operators that move data.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/frontends/onnx/context.h"

namespace cuvil::frontends::onnx {
namespace {

using Ints = std::vector<int64_t>;

void transpose(OpContext& c) {
  Ints perm = c.attr_ints("perm", {});
  if (perm.empty()) {
    perm.resize(static_cast<size_t>(c.rank(0)));
    std::iota(perm.rbegin(), perm.rend(), 0);
  }
  c.out(0, c.b.add("Transpose", {c.in(0)}, {{"perm", perm}}, c.out_name()));
}

void concat(OpContext& c) {
  KnownInts all;
  bool known = true, symbolic = false;
  for (size_t i = 0; i < c.num_inputs() && known; ++i) {
    const auto k = c.known(i);
    known = k && !k->scalar;
    symbolic = symbolic || (known && !c.constant(i));
    if (known) all.values.insert(all.values.end(), k->values.begin(), k->values.end());
    if (known) all.dtype = k->dtype;
  }
  if (known && symbolic) return c.out_known(0, std::move(all));
  std::vector<ir::Value*> parts;
  for (size_t i = 0; i < c.num_inputs(); ++i) parts.push_back(c.in(i));
  const int64_t axis = c.axis(c.attr_int("axis", 0), c.rank(0));
  c.out(0, c.b.add("Concat", parts, {{"axis", axis}}, c.out_name()));
}

/// A bound of one axis as ONNX clamps it; symbolic extents allow what stays decidable.
Dim clamp_bound(OpContext& c, const Dim& v, const Dim& extent, int64_t step, bool is_end) {
  if (v.is_const() && extent.is_const()) {
    const int64_t n = extent.value();
    int64_t x = v.value();
    if (x < 0) x = x < std::numeric_limits<int64_t>::min() + n ? -1 : x + n;
    // A negative step may end before the first element: -1.
    const int64_t low = step < 0 ? (is_end ? -1 : 0) : 0, high = step < 0 ? n - 1 : n;
    return Dim(std::clamp(x, std::min(low, high), high));
  }
  if (v.is_const()) {
    const int64_t x = v.value();
    if (step > 0 && x >= (int64_t{1} << 31) - 1) return extent;  // "to the end"
    if (step > 0 && x < 0) return max(extent + v, Dim(0));
    if (step > 0) return min(v, extent);
  }
  if (step > 0 && v.lower_bound().value_or(-1) >= 0) return min(v, extent);
  c.unsupported("Slice whose bounds " + v.str() + " on an axis of " + extent.str() + " cannot be decided");
}

void slice(OpContext& c) {
  std::vector<Dim> starts, ends;
  Ints axes, steps;
  if (c.opset < 10) {
    for (int64_t v : c.attr_ints("starts", {})) starts.emplace_back(v);
    for (int64_t v : c.attr_ints("ends", {})) ends.emplace_back(v);
    axes = c.attr_ints("axes", {});
  } else {
    starts = c.dims(1, "starts");
    ends = c.dims(2, "ends");
    if (c.has(3)) axes = c.ints(3, "axes");
    if (c.has(4)) steps = c.ints(4, "steps");
  }
  if (axes.empty())
    for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (starts.size() != ends.size() || starts.size() != axes.size() || starts.size() != steps.size())
    c.malformed("Slice: starts, ends, axes and steps differ in length");

  if (auto k = c.known(0);
      k && !k->scalar && !c.constant(0) && axes.size() == 1 && starts[0].is_const() && ends[0].is_const()) {
    KnownInts r{{}, false, k->dtype};
    const Dim n(static_cast<int64_t>(k->values.size()));
    if (steps[0] == 0) c.malformed("Slice with a step of 0");
    const int64_t begin = clamp_bound(c, starts[0], n, steps[0], false).value();
    const int64_t end = clamp_bound(c, ends[0], n, steps[0], true).value();
    for (int64_t i = begin; steps[0] > 0 ? i < end : i > end; i += steps[0])
      r.values.push_back(k->values[static_cast<size_t>(i)]);
    return c.out_known(0, std::move(r));
  }
  const Shape& shape = c.type(0).shape;
  const auto rank = shape.size();
  Shape begin(rank, Dim(0)), size(shape);
  Ints step(rank, 1);
  std::vector<bool> seen(rank, false);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<size_t>(c.axis(axes[i], c.rank(0)));
    if (seen[a]) c.malformed("Slice names an axis twice");
    seen[a] = true;
    if (steps[i] == 0) c.malformed("Slice with a step of 0");
    if (steps[i] < 0 && !shape[a].is_const())
      c.unsupported("Slice with a negative step on an axis of " + shape[a].str());
    const Dim b = clamp_bound(c, starts[i], shape[a], steps[i], false);
    const Dim e = clamp_bound(c, ends[i], shape[a], steps[i], true);
    constexpr int64_t kFar = int64_t{1} << 40;  // a step beyond any extent takes one element
    step[a] = std::clamp(steps[i], -kFar, kFar);
    begin[a] = b;
    size[a] = max(ceildiv(step[a] > 0 ? e - b : b - e, Dim(std::abs(step[a]))), Dim(0));
  }
  c.out(0, c.b.add("Slice", {c.in(0)}, {{"begin", begin}, {"size", size}, {"step", step}}, c.out_name()));
}

/// Splits become slices.
void split(OpContext& c) {
  const Shape& shape = c.type(0).shape;
  const auto axis = static_cast<size_t>(c.axis(c.attr_int("axis", 0), c.rank(0)));
  const auto parts = static_cast<int64_t>(c.num_outputs());
  std::vector<Dim> sizes;
  if (c.opset >= 13 && c.has(1)) {
    sizes = c.dims(1, "the sizes");
  } else if (c.attribute("split")) {
    for (int64_t v : c.attr_ints("split", {})) sizes.emplace_back(v);
  } else {
    if (!shape[axis].is_const()) c.unsupported("Split of an axis of " + shape[axis].str() + " without sizes");
    const int64_t n = shape[axis].value(), each = (n + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) sizes.emplace_back(std::clamp<int64_t>(n - i * each, 0, each));
  }
  if (static_cast<int64_t>(sizes.size()) != parts) c.malformed("Split: sizes and outputs differ in number");
  Dim at(0);
  for (size_t i = 0; i < sizes.size(); ++i) {
    Shape begin(shape.size(), Dim(0)), size(shape);
    begin[axis] = at;
    size[axis] = sizes[i];
    at = at + sizes[i];
    if (c.wants(i))
      c.out(i, c.b.add("Slice", {c.in(0)}, {{"begin", begin}, {"size", size}, {"step", Ints(shape.size(), 1)}},
                       c.out_name(i)));
  }
  const Dim rest = shape[axis] - at;
  if (rest.is_const() && rest.value() != 0) c.malformed("Split: the sizes do not add up to the axis's extent");
}

void pad(OpContext& c) {
  const auto rank = static_cast<size_t>(c.rank(0));
  Ints given = c.opset < 11 ? c.attr_ints("pads", {}) : c.ints(1, "pads");
  Ints axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (c.has(3)) axes = c.ints(3, "axes");
  if (given.size() != 2 * axes.size()) c.malformed("Pad: two numbers per axis are needed");
  Ints pads(2 * rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<size_t>(c.axis(axes[i], c.rank(0)));
    pads[a] = given[i];
    pads[a + rank] = given[i + axes.size()];
  }
  double value = c.attr_float("value", 0);
  if (c.opset >= 11 && c.has(2)) value = c.number(2, "the value");
  c.out(0, c.b.add("Pad", {c.in(0)}, {{"pads", pads}, {"mode", c.attr_string("mode", "constant")}, {"value", value}},
                   c.out_name()));
}

void gather(OpContext& c) {
  const int64_t axis = c.axis(c.attr_int("axis", 0), std::max(1, c.known(0) && !c.constant(0) ? 1 : c.rank(0)));
  const auto data = c.known(0), index = c.known(1);
  const bool numbers =
      index && std::all_of(index->values.begin(), index->values.end(), [](const Dim& d) { return d.is_const(); });
  if (data && !data->scalar && !c.constant(0) && numbers) {
    KnownInts r{{}, index->scalar, data->dtype};
    for (const Dim& d : index->values) {
      const int64_t n = static_cast<int64_t>(data->values.size()), i = d.value() < 0 ? d.value() + n : d.value();
      if (i < 0 || i >= n) c.malformed("Gather: index " + d.str() + " is out of range");
      r.values.push_back(data->values[static_cast<size_t>(i)]);
    }
    return c.out_known(0, std::move(r));
  }
  c.out(0, c.b.add("Gather", {c.in(0), c.in(1)}, {{"axis", axis}}, c.out_name()));
}
void gather_elements(OpContext& c) {
  c.out(0, c.b.add("GatherElements", {c.in(0), c.in(1)}, {{"axis", c.axis(c.attr_int("axis", 0), c.rank(0))}},
                   c.out_name()));
}
void gather_nd(OpContext& c) {
  c.out(0, c.b.add("GatherND", {c.in(0), c.in(1)}, {{"batch_dims", c.attr_int("batch_dims", 0)}}, c.out_name()));
}

void scatter_elements(OpContext& c) {
  c.out(0,
        c.b.add("ScatterElements", {c.in(0), c.in(1), c.in(2)},
                {{"axis", c.axis(c.attr_int("axis", 0), c.rank(0))}, {"reduction", c.attr_string("reduction", "none")}},
                c.out_name()));
}
void scatter_nd(OpContext& c) {
  c.out(0, c.b.add("ScatterND", {c.in(0), c.in(1), c.in(2)}, {{"reduction", c.attr_string("reduction", "none")}},
                   c.out_name()));
}

void tile(OpContext& c) {
  const Ints repeats = c.ints(1, "the repeats");
  if (repeats.size() != static_cast<size_t>(c.rank(0))) c.malformed("Tile: one repeat per axis is needed");
  c.out(0, c.b.add("Tile", {c.in(0)}, {{"repeats", repeats}}, c.out_name()));
}

void depth_to_space(OpContext& c) {
  c.out(0, c.b.add("DepthToSpace", {c.in(0)},
                   {{"blocksize", c.attr_int("blocksize", 0)}, {"mode", c.attr_string("mode", "DCR")}}, c.out_name()));
}
void space_to_depth(OpContext& c) {
  const int64_t block = c.attr_int("blocksize", 0);
  const std::string mode = c.attr_string("mode", "DCR");
  if (mode == "DCR") return c.out(0, c.b.add("SpaceToDepth", {c.in(0)}, {{"blocksize", block}}, c.out_name()));
  if (mode != "CRD") c.malformed("SpaceToDepth: mode '" + mode + "' is not defined");
  if (c.rank(0) != 4 || block < 1) c.malformed("SpaceToDepth takes an image and a block's size");
  // A channel's block becomes its neighbours, instead of the slowest part of the channels.
  const Shape s = c.type(0).shape;
  const Dim b(block), h = floordiv(s[2], b), w = floordiv(s[3], b);
  ir::Value* x = c.b.add("Reshape", {c.in(0)}, {{"shape", Shape{s[0], s[1], h, b, w, b}}});
  x = c.b.add("Transpose", {x}, {{"perm", Ints{0, 1, 3, 5, 2, 4}}});
  c.out(0, c.b.add("Reshape", {x}, {{"shape", Shape{s[0], s[1] * b * b, h, w}}}, c.out_name()));
}

void one_hot(OpContext& c) {
  const int64_t depth = static_cast<int64_t>(c.number(1, "the depth"));
  c.out(0, c.b.add("OneHot", {c.in(0), c.in(2)},
                   {{"depth", depth}, {"axis", c.axis(c.attr_int("axis", -1), c.rank(0) + 1)}}, c.out_name()));
}

void trilu(OpContext& c) {
  const int64_t k = c.has(1) ? static_cast<int64_t>(c.number(1, "the diagonal")) : 0;
  c.out(0, c.b.add("Trilu", {c.in(0)}, {{"upper", int64_t{c.attr_int("upper", 1) != 0}}, {"k", k}}, c.out_name()));
}

/// start + delta * (0, 1, 2, ...): the positions are a running sum of ones, so that the length may be symbolic.
ir::Value* counted(OpContext& c, const Dim& length, DType dtype) {
  ir::Value* one = c.b.constant(ir::Tensor::scalar(dtype, 1));
  ir::Value* ones = c.b.add("Expand", {one}, {{"shape", Shape{length}}});
  return c.b.add("CumSum", {ones}, {{"axis", int64_t{0}}, {"exclusive", int64_t{1}}});
}

void range(OpContext& c) {
  const auto a = c.known(0), b = c.known(1), step = c.known(2);
  if (a && b && step && a->values.size() == 1 && b->values.size() == 1 && step->values.size() == 1 &&
      !(a->values[0].is_const() && b->values[0].is_const())) {
    const std::optional<int64_t> d = step->values[0].as_const();
    if (!d || *d <= 0) c.unsupported("Range between symbolic bounds whose step is not a positive constant");
    const Dim start = a->values[0], length = max(ceildiv(b->values[0] - start, Dim(*d)), Dim(0));
    ir::Value* v = counted(c, length, DType::i64);
    if (*d != 1) v = c.b.add("Mul", {v, c.b.constant(ir::Tensor::scalar(DType::i64, static_cast<double>(*d)))});
    if (start != Dim(0)) v = c.b.add("Add", {v, c.in(0)});
    if (a->dtype != DType::i64) v = c.b.add("Cast", {v}, {{"to", a->dtype}});
    return c.out(0, v);
  }
  const double first = c.number(0, "the start"), limit = c.number(1, "the limit"), delta = c.number(2, "the step");
  const DType dtype = c.type(0).dtype;
  if (delta == 0) c.malformed("Range with a step of 0");
  const double n = std::max(0.0, std::ceil((limit - first) / delta));
  if (!(n <= 1 << 24)) c.unsupported("Range of more than 2^24 elements");
  std::vector<double> values;
  for (int64_t i = 0; i < static_cast<int64_t>(n); ++i) values.push_back(first + static_cast<double>(i) * delta);
  if (is_int(dtype)) {
    ir::Value* v = c.ints_constant(Ints(values.begin(), values.end()));
    return c.out(0, dtype == DType::i64 ? v : c.b.add("Cast", {v}, {{"to", dtype}}, c.out_name()));
  }
  ir::Value* v =
      c.b.constant(ir::Tensor::from_floats({Dim(static_cast<int64_t>(values.size()))}, {values.begin(), values.end()}));
  c.out(0, dtype == DType::f32 ? v : c.b.add("Cast", {v}, {{"to", dtype}}, c.out_name()));
}

void eye_like(OpContext& c) {
  const Shape& s = c.type(0).shape;
  if (s.size() != 2 || !is_static(s)) c.unsupported("EyeLike of a tensor that is no matrix of known size");
  const auto onnx_type = static_cast<int32_t>(c.attr_int("dtype", 0));
  const std::optional<DType> dtype = onnx_type ? dtype_of(onnx_type) : std::optional(c.type(0).dtype);
  if (!dtype) c.unsupported("EyeLike of " + onnx_type_name(onnx_type));
  const int64_t rows = s[0].value(), columns = s[1].value(), k = c.attr_int("k", 0);
  if (rows * columns > (int64_t{1} << 24)) c.unsupported("EyeLike of more than 2^24 elements");
  std::vector<float> eye(static_cast<size_t>(rows * columns), 0.0F);
  for (int64_t i = 0; i < rows; ++i)
    if (i + k >= 0 && i + k < columns) eye[static_cast<size_t>(i * columns + i + k)] = 1.0F;
  ir::Value* v = c.b.constant(ir::Tensor::from_floats(s, eye));
  c.out(0, *dtype == DType::f32 ? v : c.b.add("Cast", {v}, {{"to", *dtype}}, c.out_name()));
}

const Mapping kMappings[] = {
    {"Transpose", transpose},
    {"Concat", concat},
    {"Slice", slice},
    {"Split", split},
    {"Pad", pad},
    {"Gather", gather},
    {"GatherElements", gather_elements},
    {"GatherND", gather_nd},
    {"ScatterElements", scatter_elements},
    {"Scatter", scatter_elements},
    {"ScatterND", scatter_nd},
    {"Tile", tile},
    {"DepthToSpace", depth_to_space},
    {"SpaceToDepth", space_to_depth},
    {"OneHot", one_hot},
    {"Trilu", trilu},
    {"Range", range},
    {"EyeLike", eye_like},
};

}  // namespace

std::span<const Mapping> movement_mappings() { return kMappings; }

}  // namespace cuvil::frontends::onnx
