#include "core/ops/resize.h"

#include <algorithm>
#include <cmath>

#include "core/ops/loops.h"
#include "core/ops/window.h"

namespace cuvil::ops {

using kernel::Expr;
using kernel::make;
using kernel::Op;

namespace {

Expr real(const Expr& like, double v) { return kernel::constant({DType::f64, like.type().lanes}, v); }
Expr real(const Expr& i) { return kernel::cast({DType::f64, 1}, i); }

/// The part of the input along `axis` that tf_crop_and_resize samples: 0 and 1 are its first and last element.
std::pair<double, double> crop_of(const ir::Node& node, size_t axis) {
  if (!node.has("roi")) return {0, 1};
  const auto& roi = node.attr<std::vector<double>>("roi");
  return {roi[axis], roi[axis + roi.size() / 2]};
}

/// y's size over x's where it is known.
std::optional<double> known_scale(const ir::Node& node, size_t axis) {
  if (node.has("scales")) return node.attr<std::vector<double>>("scales")[axis];
  const Dim &in = node.input(0)->type.shape[axis], &out = node.attr<Shape>("shape")[axis];
  if (!in.is_const() || !out.is_const() || in.value() == 0) return std::nullopt;
  return static_cast<double>(out.value()) / static_cast<double>(in.value());
}

/// With antialias the filter is stretched where y is smaller: {first tap, taps} at a scale.
std::pair<int64_t, int64_t> antialias_taps(const std::string& mode, double scale) {
  const double radius = (mode == "cubic" ? 2 : 1) / std::min(scale, 1.0);
  const auto first = static_cast<int64_t>(std::floor(-radius)) + 1;
  return {first, 2 - 2 * first};
}
constexpr int64_t kMostTaps = 128;

/// Position in the input, in f64, by the coordinate transformation of ONNX Resize.
/// `length`: y's size in f64; with given scales before it was rounded.
Expr input_position(const std::string& mode, const Expr& o, const Expr& in, const Expr& out, const Expr& scale,
                    const Expr& length) {
  const Expr x = real(o), half = real(o, 0.5);
  const auto all = [&](const Expr& e) { return kernel::broadcast(e, o.type().lanes); };
  if (mode == "asymmetric") return x / all(scale);
  if (mode == "tf_half_pixel_for_nn") return (x + half) / all(scale);
  if (mode == "align_corners") {
    const Expr many = out > Expr(1);  // of a single element: position 0
    const Expr steps = kernel::select(many, length - real(out, 1), real(out, 1));
    return x * all(real(in - Expr(1)) / steps) * all(kernel::select(many, real(out, 1), real(out, 0)));
  }
  const Expr centre = (x + half) / all(scale) - half;
  if (mode == "pytorch_half_pixel") return kernel::select(all(out > Expr(1)), centre, real(o, 0));
  if (mode == "half_pixel_symmetric") {
    const Expr adjustment = real(out) / (scale * real(in));
    return centre + all(real(in) * real(in, 0.5) * (real(in, 1) - adjustment));
  }
  return centre;  // half_pixel
}

Expr nearest_index(const std::string& mode, const Expr& x) {
  if (mode == "floor") return make(Op::floor, {x});
  if (mode == "ceil") return make(Op::ceil, {x});
  if (mode == "round_prefer_ceil") return make(Op::floor, {x + real(x, 0.5)});
  return make(Op::ceil, {x - real(x, 0.5)});  // round_prefer_floor
}

Expr clamp_index(const Expr& i, const Expr& n) {
  return kernel::max(kernel::min(i, kernel::broadcast(n - Expr(1), i.type().lanes)), Expr(0));
}

/// Keys' cubic convolution weights at distance t in [0, 1) of the second of four taps.
std::vector<Expr> cubic_weights(const Expr& t, double a) {
  const auto c = [&](double v) { return real(t, v); };
  const Expr u = t + c(1), v = c(1) - t, w = c(2) - t;
  const auto far = [&](const Expr& d) { return ((c(a) * d - c(5 * a)) * d + c(8 * a)) * d - c(4 * a); };
  const auto near = [&](const Expr& d) { return ((c(a + 2) * d - c(a + 3)) * d) * d + c(1); };
  return {far(u), near(t), near(v), far(w)};
}

/// The same kernel at any distance d >= 0.
Expr cubic_weight(const Expr& d, double a) {
  const auto c = [&](double v) { return real(d, v); };
  const Expr near = ((c(a + 2) * d - c(a + 3)) * d) * d + c(1),
             far = ((c(a) * d - c(5 * a)) * d + c(8 * a)) * d - c(4 * a);
  return kernel::select(d <= c(1), near, kernel::select(d < c(2), far, c(0)));
}

std::vector<ir::Type> infer_resize(const InferContext& c) {
  const ir::Node& n = c.node;
  const Shape& shape = n.attr<Shape>("shape");
  if (shape.size() != c.in(0).shape.size()) c.fail("shape needs one size per axis");
  const auto one_of = [&](std::string_view name, std::initializer_list<std::string_view> allowed) {
    const std::string& v = n.attr<std::string>(name);
    for (std::string_view a : allowed)
      if (v == a) return;
    throw_unsupported("Resize with " + std::string(name) + " '" + v + "' is not supported", n.location);
  };
  one_of("mode", {"nearest", "linear", "cubic"});
  one_of("coordinates", {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                         "tf_half_pixel_for_nn", "tf_crop_and_resize"});
  one_of("nearest", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  if (n.has("roi") && n.attr<std::vector<double>>("roi").size() != 2 * shape.size())
    c.fail("roi needs two numbers per axis");
  if (n.attr<std::string>("mode") != "nearest" && !is_float(c.in(0).dtype))
    throw_unsupported("Resize of integers by interpolation is not supported; cast to f32", n.location);
  if (n.has("scales")) {
    const auto& scales = n.attr<std::vector<double>>("scales");
    if (scales.size() != shape.size()) c.fail("scales need one number per axis");
    for (double s : scales)
      if (!(s > 0)) c.fail("scales must be positive");
  }
  int changed = 0;
  for (int a = 0; a < c.in(0).rank(); ++a) {
    const size_t i = static_cast<size_t>(a);
    if (resize_keeps(n, a)) continue;
    ++changed;
    if (c.in(0).shape[i].as_const() == 0 && shape[i].as_const() != 0) c.fail("there is nothing to resize");
  }
  if (n.attr<int64_t>("antialias") != 0 && n.attr<std::string>("mode") != "nearest") {
    if (changed > 1) c.fail("with antialias one axis is resized at a time");
    for (int a = 0; a < c.in(0).rank(); ++a) {
      if (resize_keeps(n, a)) continue;
      const std::optional<double> scale = known_scale(n, static_cast<size_t>(a));
      if (!scale || antialias_taps(n.attr<std::string>("mode"), *scale).second > kMostTaps)
        throw_unsupported("Resize with antialias by a factor that is not known, or is too small", n.location);
    }
  }
  if (n.attr<std::string>("mode") != "nearest" && changed > 3)
    throw_unsupported("Resize by interpolation along more than three axes is not supported", n.location);
  return {{c.in(0).dtype, shape, {}}};
}

void lower_resize(LowerContext& c) {
  const int rank = c.out_type().rank();
  const double outside = c.node().attr<double>("extrapolation");
  const bool nearest = c.node().attr<std::string>("mode") == "nearest";
  const DType wide = nearest ? c.in_type(0).dtype : accumulator_type(c.in_type(0).dtype);
  Walk walk;
  walk.grain = nearest ? 4096 : 512;
  for_each(c, c.out_memory().type(), walk, [&](const Coords& at) {
    // The sum over all combinations of taps: axis by axis, weights outermost.
    const std::function<Expr(int, const Coords&)> sum = [&](int axis, const Coords& in) -> Expr {
      if (axis == rank) return kernel::cast({wide, 1}, c.load(0, in));
      if (resize_keeps(c.node(), axis)) return sum(axis + 1, in);
      Expr total;
      const std::vector<ResizeTap> taps = resize_taps(c, axis, at.at(axis));
      for (const ResizeTap& tap : taps) {
        Expr value = sum(axis + 1, in.with(axis, tap.index));
        if (tap.weight) value = value * kernel::broadcast(kernel::cast({wide, 1}, tap.weight), at.lanes);
        total = total ? total + value : value;
      }
      if (const Expr inside = taps[0].inside)
        total = kernel::select(kernel::broadcast(inside, at.lanes), total,
                               kernel::broadcast(kernel::constant({wide, 1}, outside), at.lanes));
      return total;
    };
    c.store(at, sum(0, at));
  });
}

}  // namespace

bool resize_keeps(const ir::Node& node, int axis) {
  const size_t a = static_cast<size_t>(axis);
  if (node.has("scales") && node.attr<std::vector<double>>("scales")[a] != 1) return false;
  if (crop_of(node, a) != std::pair(0.0, 1.0)) return false;
  return node.input(0)->type.shape[a] == node.attr<Shape>("shape")[a];
}

std::vector<ResizeTap> resize_taps(LowerContext& c, int axis, const Expr& o) {
  const ir::Node& node = c.node();
  if (resize_keeps(node, axis)) return {{o, {}}};
  const size_t a = static_cast<size_t>(axis);
  const Expr in = c.dim(node.input(0)->type.shape[a]), out = c.dim(node.attr<Shape>("shape")[a]);
  const Expr scale = node.has("scales")
                         ? kernel::const_float({DType::f64, 1}, node.attr<std::vector<double>>("scales")[a])
                         : c.b().let("scale", real(out) / real(in));
  const std::string& coordinates = node.attr<std::string>("coordinates");
  Expr x, inside;
  if (coordinates == "tf_crop_and_resize") {
    const auto [begin, end] = crop_of(node, a);
    const auto all = [&](const Expr& e) { return kernel::broadcast(e, o.type().lanes); };
    const Expr one = kernel::constant({DType::f64, 1}, 1), last = real(in) - one;
    const auto number = [&](double v) { return kernel::const_float({DType::f64, 1}, v); };
    const Expr step = number(end - begin) * last / real(kernel::max(out - Expr(1), Expr(1)));
    const Expr spread = real(o) * all(step) + all(number(begin) * last);
    x = c.b().let("x", kernel::select(all(out > Expr(1)), spread, all(number((begin + end) / 2) * last)));
    inside = c.b().let("inside", (x >= real(o, 0)) & (x <= all(last)));
  } else {
    const Expr length = node.has("scales") ? c.b().let("length", scale * real(in)) : real(out);
    x = c.b().let("x", input_position(coordinates, o, in, out, scale, length));
  }
  const auto index = [](const Expr& v) { return kernel::cast({DType::i64, 1}, v); };
  const std::string& mode = node.attr<std::string>("mode");
  if (mode == "nearest")
    return {{c.b().let("i", clamp_index(index(nearest_index(node.attr<std::string>("nearest"), x)), in)), {}, inside}};

  const Expr floor = c.b().let("floor", make(Op::floor, {x}));
  const Expr first = c.b().let("first", index(floor)), t = c.b().let("t", x - floor);
  std::vector<Expr> weights = {real(t, 1) - t, t};
  int64_t before = 0;
  Expr total;
  const bool antialias = node.attr<int64_t>("antialias") != 0;
  if (antialias) {
    const double shrink = std::min(*known_scale(node, a), 1.0);
    const auto [begin, count] = antialias_taps(mode, shrink);
    before = -begin;
    weights.clear();
    for (int64_t k = 0; k < count; ++k) {
      const Expr d = make(Op::abs, {real(t, static_cast<double>(begin + k)) - t}) * real(t, shrink);
      weights.push_back(c.b().let("w", mode == "cubic" ? cubic_weight(d, node.attr<double>("cubic_coeff_a"))
                                                       : kernel::max(real(t, 1) - d, real(t, 0))));
    }
  } else if (mode == "cubic") {
    weights = cubic_weights(t, node.attr<double>("cubic_coeff_a"));
    before = 1;
  }
  std::vector<ResizeTap> taps;
  for (size_t k = 0; k < weights.size(); ++k) {
    const Expr i = first + Expr(static_cast<int64_t>(k) - before);
    const Expr clamped = c.b().let("i", clamp_index(i, in));
    const bool exclude = node.attr<int64_t>("exclude_outside") != 0;
    if (exclude) weights[k] = kernel::select(i == clamped, weights[k], real(t, 0));
    if (exclude || antialias) total = c.b().let("total", total ? total + weights[k] : weights[k]);
    taps.push_back({clamped, {}, inside});
  }
  for (size_t k = 0; k < weights.size(); ++k)
    taps[k].weight = c.b().let("w", kernel::cast({DType::f32, 1}, total ? weights[k] / total : weights[k]));
  return taps;
}

OpDef define_resize() {
  OpDef d;
  d.name = "Resize";
  d.doc =
      "y = x sampled at other sizes, axis by axis (ONNX Resize): output position o meets input position (o + 0.5) / "
      "scale - "
      "0.5, or as `coordinates` says; scale is y's size over x's unless `scales` gives it. Positions outside take the "
      "border.";
  d.inputs = {{"x", "any shape"}};
  d.outputs = {{"y", "of the given shape"}};
  d.attributes = {
      required("shape", AttrKind::shape, "sizes of y"),
      optional("mode", AttrKind::string, "nearest, linear or cubic", std::string("nearest")),
      optional(
          "coordinates", AttrKind::string,
          "half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners, asymmetric, tf_half_pixel_for_nn or "
          "tf_crop_and_resize",
          std::string("half_pixel")),
      optional("nearest", AttrKind::string, "round_prefer_floor, round_prefer_ceil, floor or ceil",
               std::string("round_prefer_floor")),
      absent_ok("scales", AttrKind::reals, "scale per axis"),
      optional("cubic_coeff_a", AttrKind::real, "of the cubic kernel", -0.75),
      optional("exclude_outside", AttrKind::integer, "1: taps outside weigh nothing, the others more", int64_t{0}),
      optional("antialias", AttrKind::integer, "1: the filter is stretched where y is smaller; one axis at a time",
               int64_t{0}),
      absent_ok("roi", AttrKind::reals, "tf_crop_and_resize: first, then last positions per axis, 0 to 1"),
      optional("extrapolation", AttrKind::real, "tf_crop_and_resize: what lies outside of x", 0.0)};
  d.traits = kBlockable | kEpilogueOk | kPure;
  d.dtypes = all_dtypes();
  d.infer = infer_resize;
  d.lower = lower_resize;
  d.samples = [] {
    const auto to = [](Shape shape, std::string mode, std::string coordinates, std::string nearest = "floor") {
      return ir::Attributes{{"shape", std::move(shape)},
                            {"mode", std::move(mode)},
                            {"coordinates", std::move(coordinates)},
                            {"nearest", std::move(nearest)}};
    };
    const std::vector<double> square = {1, 2, 3, 4};
    return std::vector<Sample>{
        {"by_hand", {f32({1, 1, 2, 2})}, to({1, 1, 4, 2}, "nearest", "asymmetric"), {square}, {1, 2, 1, 2, 3, 4, 3, 4}},
        {"linear", {f32({4})}, to({7}, "linear", "align_corners"), {square}, {1, 1.5, 2, 2.5, 3, 3.5, 4}},
        {"half_pixel",
         {f32({4})},
         to({8}, "linear", "half_pixel"),
         {square},
         {1, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4}},
        {"cubic",
         {f32({4})},
         to({8}, "cubic", "half_pixel"),
         {square},
         {0.89453125, 1.19140625, 1.66796875, 2.296875, 2.703125, 3.33203125, 3.80859375, 4.10546875}},
        {"crop",
         {f32({4})},
         {{"shape", Shape{Dim(3)}},
          {"mode", std::string("linear")},
          {"coordinates", std::string("tf_crop_and_resize")},
          {"roi", std::vector<double>{0.5, 1.5}},
          {"extrapolation", 9.0}},
         {square},
         {2.5, 4, 9}},
        {"antialias",
         {f32({1, 8})},
         {{"shape", Shape{Dim(1), Dim(3)}}, {"mode", std::string("linear")}, {"antialias", int64_t{1}}},
         {{0, 1, 2, 3, 4, 5, 6, 7}},
         {0.976744186, 3.5, 6.023255814}},
        {"antialias_cubic",
         {f32({2, 3, 19})},
         {{"shape", Shape{Dim(2), Dim(3), Dim(7)}},
          {"mode", std::string("cubic")},
          {"antialias", int64_t{1}},
          {"exclude_outside", int64_t{1}}}},
        {"upsample", {f32({2, 20, 5, 7})}, to({2, 20, 10, 14}, "nearest", "asymmetric")},
        {"bilinear", {f32({1, 20, 5, 7})}, to({1, 20, 13, 11}, "linear", "half_pixel")},
        {"bicubic", {f32({1, 3, 5, 7})}, to({1, 3, 8, 6}, "cubic", "pytorch_half_pixel")},
        {"symmetric", {f32({1, 2, 6, 6})}, to({1, 2, 4, 9}, "linear", "half_pixel_symmetric")},
        {"rounding", {i64({1, 2, 5, 7})}, to({1, 2, 9, 4}, "nearest", "half_pixel", "round_prefer_ceil")},
        {"ceil", {f32({1, 2, 5, 7})}, to({1, 2, 9, 17}, "nearest", "tf_half_pixel_for_nn", "ceil")},
    };
  };
  return d;
}

}  // namespace cuvil::ops
