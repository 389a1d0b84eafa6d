// Images: sampling grids, crops, columns, unpooling.
#include <algorithm>
#include <numeric>

#include "core/frontends/onnx/compose.h"

namespace cuvil::frontends::onnx {
namespace {

using V = Compose::V;
using Ints = std::vector<int64_t>;

void grid_sample(OpContext& c) {
  std::string mode = c.attr_string("mode", c.opset < 20 ? "bilinear" : "linear");
  if (mode == "bilinear") mode = "linear";  // as opsets before 20 call it
  if (mode == "bicubic") mode = "cubic";
  c.out(0, c.b.add("GridSample", {c.in(0), c.in(1)},
                   {{"mode", mode},
                    {"padding", c.attr_string("padding_mode", "zeros")},
                    {"align_corners", int64_t{c.attr_int("align_corners", 0) != 0}}},
                   c.out_name()));
}

/// Homogeneous positions of all points of an image in [-1, 1], times theta: [N, 2, 3] or [N, 3, 4].
void affine_grid(OpContext& c) {
  const Compose m(c);
  const std::vector<Dim> size = c.dims(1, "the size");
  const size_t axes = size.size() < 2 ? 0 : size.size() - 2;
  if ((axes != 2 && axes != 3) || c.rank(0) != 3) c.malformed("AffineGrid: sizes are [N, C, H, W] or [N, C, D, H, W]");
  const bool corners = c.attr_int("align_corners", 0) != 0;
  int64_t points = 1;
  Ints extent;
  for (size_t a = 0; a < axes; ++a) {
    if (!size[a + 2].is_const()) c.unsupported("AffineGrid of symbolic size");
    extent.push_back(size[a + 2].value());
    points *= extent.back();
    if (extent.back() < 0 || points > (1 << 24)) c.unsupported("AffineGrid of more than 2^24 points");
  }
  std::vector<float> grid;
  for (int64_t p = 0; p < points; ++p) {
    std::vector<double> at(axes);  // x first: the last axis
    int64_t rest = p;
    for (size_t a = axes; a-- > 0;) {
      const auto i = static_cast<double>(rest % extent[a]), n = static_cast<double>(extent[a]);
      rest /= extent[a];
      at[axes - 1 - a] = corners ? (n > 1 ? 2 * i / (n - 1) - 1 : -1) : (2 * i + 1) / n - 1;
    }
    for (double v : at) grid.push_back(static_cast<float>(v));
    grid.push_back(1);
  }
  V theta = c.in(0);
  V base = m.cast(m.floats({Dim(points), Dim(static_cast<int64_t>(axes + 1))}, grid), theta->type.dtype);
  Shape shape{theta->type.shape[0]};
  for (int64_t e : extent) shape.emplace_back(e);
  shape.emplace_back(static_cast<int64_t>(axes));
  c.out(0, m.reshape(m.matmul(base, theta, true), shape));
}

/// Each axis to the wanted size: cut, or filled with zeros, on both sides alike; what is odd goes to the end.
void center_crop_pad(OpContext& c) {
  const Compose m(c);
  V x = c.in(0);
  const auto rank = static_cast<size_t>(c.rank(0));
  const Ints want = c.ints(1, "the shape");
  Ints axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (c.attribute("axes")) axes = c.attr_ints("axes", {});
  if (want.size() != axes.size()) c.malformed("CenterCropPad: as many sizes as axes are needed");
  Ints pads(2 * rank, 0);
  bool padded = false;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<size_t>(c.axis(axes[i], c.rank(0)));
    const Dim& extent = x->type.shape[a];
    if (!extent.is_const()) c.unsupported("CenterCropPad of an axis of " + extent.str());
    const int64_t more = want[i] - extent.value();
    if (want[i] < 0) c.malformed("CenterCropPad to a negative size");
    if (more < 0) x = m.slice(x, static_cast<int64_t>(a), Dim(-more / 2), Dim(want[i]));
    if (more <= 0) continue;
    pads[a] = more / 2;
    pads[a + rank] = more - more / 2;
    padded = true;
  }
  if (padded) x = m.op("Pad", {x}, {{"pads", pads}});
  c.out(0, m.op("Identity", {x}));
}

/// The products of `sizes` behind each axis.
Ints strides_of(const Ints& sizes) {
  Ints strides(sizes.size(), 1);
  for (size_t a = sizes.size(); a-- > 1;) strides[a - 1] = strides[a] * sizes[a];
  return strides;
}

/// Sums blocks into images: each column [C * block] of position l is added where block l lies. Elements in the padding
/// go to one place more, which is cut off.
void col2im(OpContext& c) {
  const Compose m(c);
  V x = c.in(0);
  const Ints image = c.ints(1, "the image's shape"), block = c.ints(2, "the block's shape");
  const size_t n = image.size();
  const Ints strides = c.attr_ints("strides", Ints(n, 1)), dilations = c.attr_ints("dilations", Ints(n, 1)),
             pads = c.attr_ints("pads", Ints(2 * n, 0));
  if (c.rank(0) != 3 || n < 1 || block.size() != n || strides.size() != n || dilations.size() != n ||
      pads.size() != 2 * n)
    c.malformed("Col2Im: shapes and attributes differ in length");
  Ints places;
  int64_t pixels = 1, taps = 1, columns = 1;
  for (size_t a = 0; a < n; ++a) {
    if (image[a] < 1 || block[a] < 1 || strides[a] < 1 || dilations[a] < 1)
      c.malformed("Col2Im: sizes must be positive");
    places.push_back((image[a] + pads[a] + pads[a + n] - dilations[a] * (block[a] - 1) - 1) / strides[a] + 1);
    if (places.back() < 1) c.malformed("Col2Im: the blocks are larger than the image");
    pixels *= image[a];
    taps *= block[a];
    columns *= places.back();
  }
  if (taps * columns > (1 << 24)) c.unsupported("Col2Im of more than 2^24 block elements");
  const Shape s = x->type.shape;
  if (s[2] != Dim(columns)) c.malformed("Col2Im: " + s[2].str() + " columns, the image has " + std::to_string(columns));
  Ints index;
  const Ints block_strides = strides_of(block), place_strides = strides_of(places), image_strides = strides_of(image);
  for (int64_t t = 0; t < taps; ++t) {
    for (int64_t l = 0; l < columns; ++l) {
      int64_t at = 0;
      for (size_t a = 0; a < n; ++a) {
        const int64_t i =
            l / place_strides[a] % places[a] * strides[a] - pads[a] + t / block_strides[a] % block[a] * dilations[a];
        at = i < 0 || i >= image[a] || at < 0 ? -1 : at + i * image_strides[a];
      }
      index.push_back(at < 0 ? pixels : at);
    }
  }
  const Dim channels = floordiv(s[1], Dim(taps)), rows = s[0] * channels;
  V updates = m.transpose(m.reshape(x, {rows, Dim(taps * columns)}), {1, 0});
  V places_at = m.reshape(c.ints_constant(index), {Dim(taps * columns), Dim(1)});
  V y = m.op("ScatterND", {m.filled(x->type.dtype, 0, {Dim(pixels + 1), rows}), places_at, updates},
             {{"reduction", std::string("add")}});
  y = m.transpose(m.slice(y, 0, Dim(0), Dim(pixels)), {1, 0});
  Shape shape{s[0], channels};
  for (int64_t e : image) shape.emplace_back(e);
  c.out(0, m.reshape(y, shape));
}

/// Elements go back to where MaxPool found them; its indices count through the whole tensor.
void max_unpool(OpContext& c) {
  const Compose m(c);
  V x = c.in(0);
  const int rank = c.rank(0);
  const Ints kernel = c.attr_ints("kernel_shape", {});
  const size_t n = kernel.size();
  const Ints strides = c.attr_ints("strides", Ints(n, 1)), pads = c.attr_ints("pads", Ints(2 * n, 0));
  if (static_cast<int>(n) + 2 != rank || strides.size() != n || pads.size() != 2 * n)
    c.malformed("MaxUnpool: attributes do not fit the input's rank");
  Shape shape{x->type.shape[0], x->type.shape[1]};
  for (size_t a = 0; a < n; ++a)
    shape.push_back((x->type.shape[a + 2] - Dim(1)) * Dim(strides[a]) + Dim(kernel[a] - pads[a] - pads[a + n]));
  const Dim total = num_elements(shape), count = num_elements(x->type.shape);
  V y = m.op("ScatterND", {m.filled(x->type.dtype, 0, {total}), m.reshape(m.cast(c.in(1), DType::i64), {count, Dim(1)}),
                           m.reshape(x, {count})});
  y = m.reshape(y, shape);
  if (c.has(2)) {
    const Ints want = c.ints(2, "the output's shape");
    if (static_cast<int>(want.size()) != rank) c.malformed("MaxUnpool: the output's shape is of another rank");
    Ints more(2 * want.size(), 0);
    for (size_t a = 0; a < want.size(); ++a) {
      if (!shape[a].is_const()) c.unsupported("MaxUnpool of symbolic sizes to a given shape");
      more[a + want.size()] = want[a] - shape[a].value();
      if (more[a + want.size()] < 0) c.malformed("MaxUnpool: the output's shape is too small");
    }
    y = m.op("Pad", {y}, {{"pads", more}});
  }
  c.out(0, y);
}

/// Convolution whose taps are moved: they are sampled bilinearly into columns, and these multiplied by the weights.
void deform_conv(OpContext& c) {
  const Compose m(c);
  V x = c.in(0), weight = c.in(1), offset = c.in(2);
  if (c.rank(0) != 4 || c.rank(1) != 4 || c.rank(2) != 4) c.unsupported("DeformConv other than of images");
  const Shape s = x->type.shape, w = weight->type.shape, o = offset->type.shape;
  if (!w[2].is_const() || !w[3].is_const()) c.unsupported("DeformConv whose weight has no known size");
  const Ints kernel{w[2].value(), w[3].value()}, strides = c.attr_ints("strides", {1, 1}),
                                                 dilations = c.attr_ints("dilations", {1, 1}),
                                                 pads = c.attr_ints("pads", {0, 0, 0, 0});
  if (strides.size() != 2 || dilations.size() != 2 || pads.size() != 4)
    c.malformed("DeformConv: attributes of two axes");
  const Dim groups(c.attr_int("group", 1)), offset_groups(c.attr_int("offset_group", 1)), taps = w[2] * w[3];
  const DType dtype = x->type.dtype;
  const Dim rows = o[2], columns = o[3], all = s[0] * offset_groups;
  V moved = m.reshape(offset, {all, taps, Dim(2), rows, columns});
  // Positions of the taps in the image, then in [-1, 1], the outer edges of the outermost elements.
  std::vector<V> grid;
  for (const int axis : {1, 0}) {
    const auto a = static_cast<size_t>(axis);
    std::vector<float> tap;
    for (int64_t t = 0; t < kernel[0] * kernel[1]; ++t)
      tap.push_back(static_cast<float>((axis == 0 ? t / kernel[1] : t % kernel[1]) * dilations[a] - pads[a]));
    V place = m.mul(m.cast(m.count(o[a + 2]), dtype), static_cast<double>(strides[a]));
    place = m.reshape(place, axis == 0 ? Shape{Dim(1), Dim(1), rows, Dim(1)} : Shape{Dim(1), Dim(1), Dim(1), columns});
    V p = m.add(place, m.cast(m.floats({Dim(1), taps, Dim(1), Dim(1)}, tap), dtype));
    p = m.add(p, m.squeeze(m.slice(moved, 2, Dim(axis), Dim(1)), 2));
    V size = m.cast(m.size(s[a + 2]), dtype);
    grid.push_back(m.unsqueeze(m.sub(m.div(m.add(m.mul(p, 2), m.like(p, 1)), size), m.like(p, 1)), 4));
  }
  V points = m.reshape(m.concat({grid[0], grid[1]}, 4), {all, taps * rows, columns, Dim(2)});
  const Dim own = floordiv(s[1], offset_groups);
  V sampled = m.op("GridSample", {m.reshape(x, {all, own, s[2], s[3]}), points});
  if (c.has(4)) sampled = m.mul(sampled, m.reshape(c.in(4), {all, Dim(1), taps * rows, columns}));
  V y = m.matmul(m.reshape(weight, {groups, floordiv(w[0], groups), w[1] * taps}),
                 m.reshape(sampled, {s[0], groups, w[1] * taps, rows * columns}));
  y = m.reshape(y, {s[0], w[0], rows, columns});
  if (c.has(3)) y = m.add(y, m.reshape(c.in(3), {w[0], Dim(1), Dim(1)}));
  c.out(0, y);
}

void roi_align(OpContext& c) {
  const std::string coordinates =
      c.attr_string("coordinate_transformation_mode", c.opset < 16 ? "output_half_pixel" : "half_pixel");
  c.out(0, c.b.add("RoiAlign", {c.in(0), c.in(1), c.in(2)},
                   {{"mode", c.attr_string("mode", "avg")},
                    {"output_height", c.attr_int("output_height", 1)},
                    {"output_width", c.attr_int("output_width", 1)},
                    {"sampling_ratio", c.attr_int("sampling_ratio", 0)},
                    {"spatial_scale", c.attr_float("spatial_scale", 1)},
                    {"half_pixel", int64_t{coordinates == "half_pixel"}}},
                   c.out_name()));
}

void det(OpContext& c) { c.out(0, c.b.add("Det", {c.in(0)}, {}, c.out_name())); }

void reverse_sequence(OpContext& c) {
  c.out(0, c.b.add("ReverseSequence", {c.in(0), c.in(1)},
                   {{"time_axis", c.attr_int("time_axis", 0)}, {"batch_axis", c.attr_int("batch_axis", 1)}},
                   c.out_name()));
}

const Mapping kMappings[] = {
    {"GridSample", grid_sample},
    {"AffineGrid", affine_grid},
    {"CenterCropPad", center_crop_pad},
    {"Col2Im", col2im},
    {"MaxUnpool", max_unpool},
    {"RoiAlign", roi_align},
    {"DeformConv", deform_conv},
    {"Det", det},
    {"ReverseSequence", reverse_sequence},
};

}  // namespace

std::span<const Mapping> image_mappings() { return kMappings; }

}  // namespace cuvil::frontends::onnx
