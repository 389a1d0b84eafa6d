// Convolutions, matrix products, normalisation, pooling, resizing.
#include <algorithm>
#include <cmath>

#include "core/frontends/onnx/map_quantize.h"

namespace cuvil::frontends::onnx {
namespace {

using Ints = std::vector<int64_t>;

ir::Value* reshape(OpContext& c, ir::Value* x, Shape shape, std::string_view name = "") {
  return c.b.add("Reshape", {x}, {{"shape", std::move(shape)}}, name);
}

/// CIR's windows are two-dimensional: a signal [N, C, L] is an image [N, C, 1, L].
ir::Value* as_image(OpContext& c, ir::Value* x) {
  if (x->type.rank() != 3) return x;
  const Shape& s = x->type.shape;
  return reshape(c, x, {s[0], s[1], Dim(1), s[2]});
}
ir::Value* from_image(OpContext& c, ir::Value* y, int rank, std::string_view name) {
  if (rank != 3) return y;
  const Shape& s = y->type.shape;
  return reshape(c, y, {s[0], s[1], s[3]}, name);
}

/// Attributes of a sliding window over any number of axes; pads are those before every axis, then those behind.
struct WindowAttributes {
  Ints kernel, strides, dilations, pads;
  size_t axes() const { return kernel.size(); }
  /// Of axis `i` as an image's [1, axis] or, with `rows`, [axis, 1].
  WindowAttributes only(size_t i, bool rows) const {
    const auto pair = [&](const Ints& v, int64_t rest) { return rows ? Ints{v[i], rest} : Ints{rest, v[i]}; };
    const int64_t before = pads[i], behind = pads[i + axes()];
    return {pair(kernel, 1), pair(strides, 1), pair(dilations, 1),
            rows ? Ints{before, 0, behind, 0} : Ints{0, before, 0, behind}};
  }
  /// Of the last two axes, or of one as those of an image.
  WindowAttributes image() const {
    const size_t n = axes();
    if (n == 1) return only(0, false);
    const auto last = [&](const Ints& v) { return Ints{v[n - 2], v[n - 1]}; };
    return {last(kernel), last(strides), last(dilations), {pads[n - 2], pads[n - 1], pads[2 * n - 2], pads[2 * n - 1]}};
  }
};

Ints two(const Ints& v, int64_t first) { return v.size() == 1 ? Ints{first, v[0]} : v; }

/// Output extents of SAME_*: ceil(input / stride); the padding that this needs, more of it at the end for UPPER.
void same_pads(OpContext& c, const Shape& x, WindowAttributes& w, bool upper) {
  for (size_t i = 0; i < w.axes(); ++i) {
    const Dim& extent = x[i + 2];
    if (w.strides[i] != 1 && !extent.is_const())
      c.unsupported(std::string(c.proto.op_type) + " with auto_pad, a stride and symbolic image sizes");
    const int64_t in = w.strides[i] == 1 ? 1 << 20 : extent.value();  // with stride 1 the size does not matter
    const int64_t out = (in + w.strides[i] - 1) / w.strides[i];
    const int64_t total = std::max<int64_t>(0, (out - 1) * w.strides[i] + (w.kernel[i] - 1) * w.dilations[i] + 1 - in);
    w.pads[i] = upper ? total / 2 : total - total / 2;
    w.pads[i + w.axes()] = total - w.pads[i];
  }
}

/// The window of a node whose input is `x`: [N, C, ...].
WindowAttributes window(OpContext& c, const Ints& kernel, const Shape& x) {
  if (x.size() < 3) c.malformed(std::string(c.proto.op_type) + " needs an input with spatial axes");
  const size_t n = x.size() - 2;
  auto attr = [&](const char* name, size_t size, int64_t fallback) {
    Ints v = c.attr_ints(name, Ints(size, fallback));
    if (v.size() != size) c.malformed(std::string(c.proto.op_type) + ": attribute " + name + " has the wrong length");
    return v;
  };
  WindowAttributes w;
  if (kernel.size() != n) c.malformed(std::string(c.proto.op_type) + ": the kernel's rank does not fit the input's");
  for (int64_t k : kernel)
    if (k < 1) c.malformed(std::string(c.proto.op_type) + ": a kernel of size " + std::to_string(k));
  w.kernel = kernel;
  w.strides = attr("strides", n, 1);
  w.dilations = attr("dilations", n, 1);
  for (const Ints* v : {&w.strides, &w.dilations})
    for (int64_t k : *v)
      if (k < 1) c.malformed(std::string(c.proto.op_type) + ": strides and dilations must be positive");
  w.pads = attr("pads", 2 * n, 0);
  const std::string mode = c.attr_string("auto_pad", "NOTSET");
  if (mode == "VALID")
    w.pads.assign(2 * n, 0);
  else if (mode == "SAME_UPPER" || mode == "SAME_LOWER")
    same_pads(c, x, w, mode == "SAME_UPPER");
  else if (mode != "NOTSET")
    c.malformed("auto_pad '" + mode + "' is not defined");
  return w;
}

ir::Attributes attributes_of(const WindowAttributes& w) {
  return {{"strides", w.strides}, {"dilations", w.dilations}, {"pads", w.pads}};
}

Ints kernel_of_weight(OpContext& c, const ir::Type& w) {
  Ints kernel;
  for (int a = 2; a < w.rank(); ++a) {
    if (!w.shape[static_cast<size_t>(a)].is_const()) c.unsupported("a convolution whose weight has no known size");
    kernel.push_back(w.shape[static_cast<size_t>(a)].value());
  }
  return kernel;
}

/// Three axes: the sum over the taps of the first of two-dimensional convolutions, in which that axis joins the batch.
ir::Value* conv3d(OpContext& c, ir::Value* x, ir::Value* weight, ir::Value* bias, const WindowAttributes& w) {
  if (w.pads[0] || w.pads[3]) x = c.b.add("Pad", {x}, {{"pads", Ints{0, 0, w.pads[0], 0, 0, 0, 0, w.pads[3], 0, 0}}});
  const Shape s = x->type.shape, k = weight->type.shape;
  const Dim depth = floordiv(s[2] - Dim((w.kernel[0] - 1) * w.dilations[0] + 1), w.strides[0]) + Dim(1);
  ir::Attributes attributes = attributes_of(w.image());
  attributes["groups"] = c.attr_int("group", 1);
  ir::Value* sum = nullptr;
  for (int64_t tap = 0; tap < w.kernel[0]; ++tap) {
    ir::Value* part = c.b.add("Slice", {x},
                              {{"begin", Shape{0, 0, tap * w.dilations[0], 0, 0}},
                               {"size", Shape{s[0], s[1], depth, s[3], s[4]}},
                               {"step", Ints{1, 1, w.strides[0], 1, 1}}});
    part = c.b.add("Transpose", {part}, {{"perm", Ints{0, 2, 1, 3, 4}}});
    part = reshape(c, part, {s[0] * depth, s[1], s[3], s[4]});
    ir::Value* taps =
        c.b.add("Slice", {weight},
                {{"begin", Shape{0, 0, tap, 0, 0}}, {"size", Shape{k[0], k[1], 1, k[3], k[4]}}, {"step", Ints(5, 1)}});
    taps = reshape(c, taps, {k[0], k[1], k[3], k[4]});
    part = c.b.add("Conv2D", {part, taps, sum ? nullptr : bias}, attributes);
    sum = sum ? c.b.add("Add", {sum, part}) : part;
  }
  const Shape y = sum->type.shape;
  sum = reshape(c, sum, {s[0], depth, y[1], y[2], y[3]});
  return c.b.add("Transpose", {sum}, {{"perm", Ints{0, 2, 1, 3, 4}}}, c.out_name());
}

ir::Value* convolution(OpContext& c, ir::Value* x, ir::Value* weight, ir::Value* bias, std::string_view name) {
  const int rank = x->type.rank();
  if (weight->type.rank() != rank) c.malformed(std::string(c.proto.op_type) + ": input and weight differ in rank");
  const WindowAttributes w = window(c, kernel_of_weight(c, weight->type), x->type.shape);
  if (rank == 5) return conv3d(c, x, weight, bias, w);
  if (rank > 5) c.unsupported(std::string(c.proto.op_type) + " over " + std::to_string(rank - 2) + " spatial axes");
  ir::Attributes a = attributes_of(w.image());
  a["groups"] = c.attr_int("group", 1);
  ir::Value* y = c.b.add("Conv2D", {as_image(c, x), as_image(c, weight), bias}, std::move(a), rank == 4 ? name : "");
  return from_image(c, y, rank, name);
}

void conv(OpContext& c) { c.out(0, convolution(c, c.in(0), c.in(1), c.in_or_null(2), c.out_name())); }

/// Sums of integers are exact; padding comes after the zero point is taken off, so it stands for it.
void conv_integer(OpContext& c) {
  c.out(0, convolution(c, centred(c, 0, 2, 0), centred(c, 1, 3, c.rank(1) - 1), nullptr, c.out_name()));
}

void qlinear_conv(OpContext& c) {
  const int spatial = c.rank(3) - 2;
  ir::Value* sums = convolution(c, centred(c, 0, 2, 0), centred(c, 3, 5, spatial + 1), c.in_or_null(8), "");
  ir::Value* scales = c.b.add("Mul", {scale_of(c, 1, 0), scale_of(c, 4, spatial)});
  requantized(c, sums, scales, 6, 7);
}

void conv_transpose(OpContext& c) {
  const int rank = c.rank(0);
  if (c.rank(1) != rank) c.malformed("ConvTranspose: input and weight differ in rank");
  const auto n = static_cast<size_t>(rank - 2);
  ir::Value *x = as_image(c, c.in(0)), *w = as_image(c, c.in(1));
  const bool automatic = c.attr_string("auto_pad", "NOTSET").substr(0, 4) == "SAME";
  if (rank != 3 && rank != 4) c.unsupported("ConvTranspose over " + std::to_string(rank - 2) + " spatial axes");
  Ints out_pads = two(c.attr_ints("output_padding", Ints(n, 0)), 0);
  WindowAttributes wa = window(c, kernel_of_weight(c, c.type(1)), c.type(0).shape).image();
  const bool given = c.attribute("output_shape") != nullptr;
  if (automatic || given) {
    // The wanted output size fixes the total padding.
    const Ints want = given ? two(c.attr_ints("output_shape", {}), 1) : Ints{};
    const bool upper = c.attr_string("auto_pad", "NOTSET") == "SAME_UPPER";
    for (size_t i = 0; i < 2; ++i) {
      const Dim& in = x->type.shape[i + 2];
      if (!in.is_const()) c.unsupported("ConvTranspose with output_shape or auto_pad and symbolic image sizes");
      const int64_t size = given ? want[i] : in.value() * wa.strides[i];
      const int64_t total =
          wa.strides[i] * (in.value() - 1) + out_pads[i] + (wa.kernel[i] - 1) * wa.dilations[i] + 1 - size;
      const int64_t half = total / 2;
      wa.pads[i] = upper ? half : total - half;
      wa.pads[i + 2] = total - wa.pads[i];
      if (total < 0) {  // more room than the taps reach: pad the output
        wa.pads[i] = wa.pads[i + 2] = 0;
        out_pads[i] -= total;
      }
    }
  }
  ir::Attributes a = attributes_of(wa);
  a["groups"] = c.attr_int("group", 1);
  a["output_padding"] = out_pads;
  ir::Value* y = c.b.add("ConvTranspose2D", {x, w, c.in_or_null(2)}, std::move(a), rank == 4 ? c.out_name() : "");
  c.out(0, from_image(c, y, rank, c.out_name()));
}

struct Pooling {
  std::string_view op;
  bool ceil_mode = false, count_include_pad = false;
};

/// Pooling of an image [N, C, H, W] in a window over its two axes.
ir::Value* pool_image(OpContext& c, const Pooling& how, ir::Value* x, const WindowAttributes& w,
                      std::string_view name = "") {
  ir::Attributes a = attributes_of(w);
  a["kernel"] = w.kernel;
  a["ceil_mode"] = int64_t{how.ceil_mode};
  if (how.op == "AveragePool2D") a["count_include_pad"] = int64_t{how.count_include_pad};
  return c.b.add(how.op, {x}, std::move(a), name);
}

/// Maxima and means over boxes are maxima and means over their sides, one after the other (how many taps of a box
/// count is a product over its axes): the last two axes at once, then each other one.
ir::Value* pooled(OpContext& c, const Pooling& how, ir::Value* x, const WindowAttributes& w, std::string_view name) {
  const int rank = x->type.rank();
  if (rank == 4) return pool_image(c, how, x, w, name);
  if (rank == 3) return from_image(c, pool_image(c, how, as_image(c, x), w.image()), rank, name);
  Shape shape = x->type.shape;
  const auto n = static_cast<size_t>(rank);
  x = reshape(c, x, {shape[0], num_elements({shape.begin() + 1, shape.end() - 2}), shape[n - 2], shape[n - 1]});
  x = pool_image(c, how, x, w.image());
  shape[n - 2] = x->type.shape[2];
  shape[n - 1] = x->type.shape[3];
  for (size_t axis = n - 2; axis-- > 2;) {
    const auto at = shape.begin() + static_cast<int64_t>(axis);
    x = reshape(c, x, {1, num_elements({shape.begin(), at}), *at, num_elements({at + 1, shape.end()})});
    x = pool_image(c, how, x, w.only(axis - 2, true));
    *at = x->type.shape[2];
  }
  return reshape(c, x, shape, name);
}

WindowAttributes pool_window(OpContext& c) { return window(c, c.attr_ints("kernel_shape", {}), c.type(0).shape); }

void max_pool(OpContext& c) {
  if (c.wants(1)) c.unsupported("MaxPool with its second output, the indices");
  const Pooling how{"MaxPool2D", c.attr_int("ceil_mode", 0) != 0, false};
  c.out(0, pooled(c, how, c.in(0), pool_window(c), c.out_name()));
}
void average_pool(OpContext& c) {
  const Pooling how{"AveragePool2D", c.attr_int("ceil_mode", 0) != 0, c.attr_int("count_include_pad", 0) != 0};
  c.out(0, pooled(c, how, c.in(0), pool_window(c), c.out_name()));
}

/// (sum of |x|^p)^(1/p): a mean of windows, padding counted as zeros, times their size.
void lp_pool(OpContext& c) {
  const double p = static_cast<double>(c.attr_int("p", 2));
  if (p < 1) c.malformed("LpPool with p below 1");
  ir::Value* x = c.in(0);
  WindowAttributes w = pool_window(c);
  const auto like = [&](double v) { return c.b.constant(ir::Tensor::scalar(x->type.dtype, v)); };
  ir::Value* powers = p == 2 ? c.b.add("Mul", {x, x}) : c.b.add("Abs", {x});
  if (p > 2) powers = c.b.add("Pow", {powers, like(p)});
  // Padding is made explicit, so that every window has all its elements.
  const size_t n = w.axes(), rank = n + 2;
  Ints pads(2 * rank, 0);
  double size = 1;
  for (size_t i = 0; i < n; ++i) {
    pads[i + 2] = w.pads[i];
    pads[rank + i + 2] = w.pads[i + n] + (c.attr_int("ceil_mode", 0) != 0 ? w.strides[i] - 1 : 0);
    size *= static_cast<double>(w.kernel[i]);
  }
  w.pads.assign(2 * n, 0);
  if (pads != Ints(2 * rank, 0)) powers = c.b.add("Pad", {powers}, {{"pads", pads}});
  ir::Value* y = c.b.add("Mul", {pooled(c, {"AveragePool2D", false, true}, powers, w, ""), like(size)});
  if (p != 1) y = p == 2 ? c.b.add("Sqrt", {y}) : c.b.add("Pow", {y, like(1 / p)});
  c.out(0, y);
}

/// Pooling over all spatial axes is a reduction.
void global_pool(OpContext& c, std::string_view op) {
  Ints axes;
  for (int i = 2; i < c.rank(0); ++i) axes.push_back(i);
  c.out(0, c.b.add(op, {c.in(0)}, {{"axes", axes}, {"keepdims", int64_t{1}}}, c.out_name()));
}
void global_average_pool(OpContext& c) { global_pool(c, "ReduceMean"); }
void global_max_pool(OpContext& c) { global_pool(c, "ReduceMax"); }
void global_lp_pool(OpContext& c) {
  const int64_t p = c.attr_int("p", 2);
  if (p != 1 && p != 2) c.unsupported("GlobalLpPool with p = " + std::to_string(p));
  global_pool(c, p == 1 ? "ReduceL1" : "ReduceL2");
}

void matmul(OpContext& c) { c.out(0, c.b.add("MatMul", {c.in(0), c.in(1)}, {}, c.out_name())); }

ir::Value* scaled(OpContext& c, ir::Value* v, double factor) {
  if (factor == 1.0) return v;
  return c.b.add("Mul", {v, c.b.constant(ir::Tensor::scalar(v->type.dtype, factor))});
}
void gemm(OpContext& c) {
  ir::Value* y = c.b.add(
      "MatMul", {c.in(0), c.in(1)},
      {{"transpose_a", int64_t{c.attr_int("transA", 0) != 0}}, {"transpose_b", int64_t{c.attr_int("transB", 0) != 0}}},
      c.has(2) ? "" : c.out_name());
  y = scaled(c, y, c.attr_float("alpha", 1));
  const double beta = c.attr_float("beta", 1);
  if (c.has(2) && beta != 0) y = c.b.add("Add", {y, scaled(c, c.in(2), beta)}, {}, c.out_name());
  c.out(0, y);
}

void rms_normalization(OpContext& c) {
  c.out(0, c.b.add("RMSNormalization", {c.in(0), c.in(1)},
                   {{"axis", c.axis(c.attr_int("axis", -1), c.rank(0))}, {"epsilon", c.attr_float("epsilon", 1e-5)}},
                   c.out_name()));
}
void instance_normalization(OpContext& c) {
  c.out(0, c.b.add("InstanceNormalization", {c.in(0), c.in(1), c.in(2)}, {{"epsilon", c.attr_float("epsilon", 1e-5)}},
                   c.out_name()));
}
void lrn(OpContext& c) {
  c.out(0, c.b.add("LRN", {c.in(0)},
                   {{"size", c.attr_int("size", 1)},
                    {"alpha", c.attr_float("alpha", 1e-4)},
                    {"beta", c.attr_float("beta", 0.75)},
                    {"bias", c.attr_float("bias", 1)}},
                   c.out_name()));
}

/// Before opset 13 the axes from `axis` on count as one.
void softmax(OpContext& c) {
  const std::string_view op = c.proto.op_type;
  ir::Value* x = c.in(0);
  const int rank = c.rank(0);
  if (rank == 0) c.malformed(std::string(op) + " of a scalar");
  if (c.opset >= 13 || rank == 1) {
    c.out(0, c.b.add(op, {x}, {{"axis", c.axis(c.attr_int("axis", c.opset >= 13 ? -1 : 0), rank)}}, c.out_name()));
    return;
  }
  const auto axis = c.axis(c.attr_int("axis", 1), rank);
  if (axis == rank - 1) return c.out(0, c.b.add(op, {x}, {{"axis", axis}}, c.out_name()));
  const Shape shape = x->type.shape;
  const Dim rows = num_elements({shape.begin(), shape.begin() + axis});
  const Dim columns = num_elements({shape.begin() + axis, shape.end()});
  ir::Value* flat = c.b.add(op, {reshape(c, x, {rows, columns})}, {{"axis", int64_t{1}}});
  c.out(0, reshape(c, flat, shape, c.out_name()));
}

/// Filters of antialias are long: axis by axis they are read once each.
ir::Value* resize_by_axes(OpContext& c, const ir::Attributes& attributes, const Shape& in, const Shape& out) {
  ir::Value* x = c.in(0);
  for (size_t axis = 0; axis < in.size(); ++axis) {
    ir::Attributes a = attributes;
    Shape shape = x->type.shape;
    shape[axis] = out[axis];
    a["shape"] = shape;
    bool changed = in[axis] != out[axis];
    if (auto it = a.find("scales"); it != a.end()) {
      auto& scales = std::get<std::vector<double>>(it->second);
      changed = changed || scales[axis] != 1;
      for (size_t i = 0; i < scales.size(); ++i)
        if (i != axis) scales[i] = 1;
    }
    if (auto it = a.find("roi"); it != a.end()) {
      auto& roi = std::get<std::vector<double>>(it->second);
      changed = changed || roi[axis] != 0 || roi[axis + in.size()] != 1;
      for (size_t i = 0; i < in.size(); ++i) {
        if (i == axis) continue;
        roi[i] = 0;
        roi[i + in.size()] = 1;
      }
    }
    if (changed) x = c.b.add("Resize", {x}, std::move(a));
  }
  return x;
}

void resize(OpContext& c) {
  const int rank = c.rank(0);
  const Shape& in = c.type(0).shape;
  const bool upsample = c.proto.op_type == "Upsample";
  const size_t scales_at = upsample || c.opset < 11 ? 1 : 2;
  std::vector<double> scales(static_cast<size_t>(rank), 1.0);
  Shape out(in);
  Ints axes = c.attr_ints("axes", {});
  if (axes.empty())
    for (int i = 0; i < rank; ++i) axes.push_back(i);
  const std::string policy = c.attr_string("keep_aspect_ratio_policy", "stretch");
  auto at = [&](size_t i) { return static_cast<size_t>(c.axis(axes[i], rank)); };
  const bool by_size = !upsample && c.opset >= 11 && c.has(3) && !(c.known(3) && c.known(3)->values.empty());
  bool explicit_scales = false;
  if (by_size) {
    const std::vector<Dim> sizes = c.dims(3, "the sizes");
    if (sizes.size() != axes.size()) c.malformed("Resize: as many sizes as axes are needed");
    for (size_t i = 0; i < sizes.size(); ++i) out[at(i)] = sizes[i];
    if (policy != "stretch") {
      double ratio = 0;
      for (size_t i = 0; i < sizes.size(); ++i) {
        if (!in[at(i)].is_const() || !sizes[i].is_const())
          c.unsupported("Resize that keeps the aspect ratio of symbolic sizes");
        const double r = static_cast<double>(sizes[i].value()) / static_cast<double>(in[at(i)].value());
        ratio = i == 0 ? r : policy == "not_larger" ? std::min(ratio, r) : std::max(ratio, r);
      }
      for (size_t i = 0; i < sizes.size(); ++i) {
        scales[at(i)] = ratio;
        out[at(i)] = Dim(static_cast<int64_t>(std::floor(ratio * static_cast<double>(in[at(i)].value()) + 0.5)));
      }
      explicit_scales = true;
    }
  } else {
    std::vector<double> given = c.attr_floats("scales", {});
    if (given.empty()) {
      const ir::Tensor& t = c.tensor(scales_at, "the scales");
      for (int64_t i = 0; i < num_elements(t.type.shape).value(); ++i) given.push_back(t.as_double(i));
    }
    if (given.size() != axes.size()) c.malformed("Resize: as many scales as axes are needed");
    for (size_t i = 0; i < given.size(); ++i) {
      if (!(given[i] > 0) || !std::isfinite(given[i])) c.malformed("Resize: scales must be positive");
      if (given[i] * static_cast<double>(in[at(i)].as_const().value_or(1)) > 0x1p46)
        c.malformed("Resize: a scale of " + std::to_string(given[i]) + " is impossible");
      scales[at(i)] = given[i];
      const Dim& d = in[at(i)];
      if (d.is_const())
        out[at(i)] = Dim(static_cast<int64_t>(std::floor(static_cast<double>(d.value()) * given[i])));
      else if (given[i] == std::floor(given[i]))
        out[at(i)] = d * Dim(static_cast<int64_t>(given[i]));
      else
        c.unsupported("Resize of a symbolic size by " + std::to_string(given[i]) + ", which is no integer");
    }
    explicit_scales = true;
  }
  std::string mode = c.attr_string("mode", "nearest");
  if (mode == "bilinear") mode = "linear";
  std::string transform = c.attr_string("coordinate_transformation_mode", "half_pixel");
  std::string nearest = c.attr_string("nearest_mode", "round_prefer_floor");
  if (upsample || c.opset < 11) {
    transform = "asymmetric";
    nearest = "floor";
  }
  ir::Attributes a{{"shape", out},
                   {"mode", mode},
                   {"coordinates", transform},
                   {"nearest", nearest},
                   {"cubic_coeff_a", c.attr_float("cubic_coeff_a", -0.75)},
                   {"exclude_outside", c.attr_int("exclude_outside", 0)},
                   {"antialias", c.attr_int("antialias", 0)}};
  if (explicit_scales) a["scales"] = scales;
  if (transform == "tf_crop_and_resize") {
    std::vector<double> roi(static_cast<size_t>(2 * rank), 0.0);
    std::fill(roi.begin() + rank, roi.end(), 1.0);
    const ir::Tensor& given = c.tensor(1, "the roi");
    const auto n = static_cast<int64_t>(axes.size());
    if (num_elements(given.type.shape) != Dim(2 * n)) c.malformed("Resize: the roi needs two numbers per axis");
    for (int64_t i = 0; i < n; ++i) {
      roi[at(static_cast<size_t>(i))] = given.as_double(i);
      roi[at(static_cast<size_t>(i)) + static_cast<size_t>(rank)] = given.as_double(i + n);
    }
    a["roi"] = roi;
    a["extrapolation"] = c.attr_float("extrapolation_value", 0);
  }
  if (c.attr_int("antialias", 0) != 0 && mode != "nearest") return c.out(0, resize_by_axes(c, a, in, out));
  c.out(0, c.b.add("Resize", {c.in(0)}, std::move(a), c.out_name()));
}

const Mapping kMappings[] = {
    {"Conv", conv},
    {"ConvInteger", conv_integer},
    {"QLinearConv", qlinear_conv},
    {"ConvTranspose", conv_transpose},
    {"MaxPool", max_pool},
    {"AveragePool", average_pool},
    {"GlobalAveragePool", global_average_pool},
    {"GlobalMaxPool", global_max_pool},
    {"GlobalLpPool", global_lp_pool},
    {"LpPool", lp_pool},
    {"MatMul", matmul},
    {"Gemm", gemm},
    {"RMSNormalization", rms_normalization},
    {"InstanceNormalization", instance_normalization},
    {"LRN", lrn},
    {"Softmax", softmax},
    {"LogSoftmax", softmax},
    {"Hardmax", softmax},
    {"Resize", resize},
    {"Upsample", resize},
};

}  // namespace

std::span<const Mapping> neural_mappings() { return kMappings; }

}  // namespace cuvil::frontends::onnx
