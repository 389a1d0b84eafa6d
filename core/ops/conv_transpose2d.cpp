#include <algorithm>

#include "core/ops/define.h"
#include "core/ops/loops.h"
#include "core/ops/window.h"

namespace cuvil::ops {
namespace {

using kernel::Expr;

std::vector<ir::Type> infer_conv_transpose(const InferContext& c) {
  check_conv(c);
  const Shape& x = c.in(0).shape;
  const Shape& w = c.in(1).shape;
  const int64_t groups = c.node.attr<int64_t>("groups");
  if (w[0].value() % groups != 0) c.fail("input channels are not a multiple of groups");
  if (x[1] != w[0]) c.fail("the input has " + x[1].str() + " channels, the weight asks for " + w[0].str());
  const Dim channels = w[1] * Dim(groups);
  check_bias(c, channels);
  const Window window = window_of(c, Ints{w[2].value(), w[3].value()});
  const Ints& extra = c.node.attr<Ints>("output_padding");
  if (extra.size() != 2 || extra[0] < 0 || extra[1] < 0) c.fail("output_padding needs two numbers, not negative");
  Shape out{x[0], channels};
  for (size_t d = 0; d < 2; ++d) {
    const Dim size = (x[d + 2] - Dim(1)) * Dim(window.strides[d]) +
                     Dim(window.extent(static_cast<int>(d)) - window.pads[d] - window.pads[d + 2] + extra[d]);
    if (size.is_const() && size.value() < 0) c.fail("pads take more than there is");
    out.push_back(size);
  }
  return {{c.in(0).dtype, out, {}}};
}

/// The input position along image axis d (2 or 3) that tap k meets at an output position, and whether there is one.
Coords meet(LowerContext& c, const Window& w, const Coords& at, int d, const Expr& k, const Dim& extent) {
  const size_t i = static_cast<size_t>(d - 2);
  const Expr offset = Expr(w.pads[i]) - k * Expr(w.dilations[i]);
  Coords in = at;
  if (w.strides[i] == 1) {
    in = at.moved(d, Expr(1), offset);
  } else {
    const Expr scaled = at.at(d) + offset, stride = Expr(w.strides[i]);
    in = at.with(d, kernel::floordiv(scaled, stride)).only(scaled % stride == Expr(0));
  }
  const Expr p = in.at(d);
  return in.only((p >= Expr(0)) & (p < c.dim(extent)));
}

void lower_conv_transpose(LowerContext& c) {
  const Shape& x = c.in_type(0).shape;
  const Shape& w = c.in_type(1).shape;
  const int64_t groups = c.node().attr<int64_t>("groups");
  const int64_t in_per_group = w[0].value() / groups, out_per_group = w[1].value();
  const Window window = Window::of(c.node(), Ints{w[2].value(), w[3].value()});
  const DType acc_type = accumulator_type(c.in_type(0).dtype);
  Walk walk;
  walk.grain = std::max<int64_t>(64, 65536 / std::max<int64_t>(1, in_per_group * window.kernel[0] * window.kernel[1]));
  for_each(c, c.out_memory().type(), walk, [&](const Coords& at) {
    Register acc(c.b(), "acc", bias_at(c, at));
    const bool shared = groups == 1 || at.axis != 1 || out_per_group % at.lanes == 0;
    const Expr group = groups == 1 ? Expr(0) : kernel::floordiv(shared ? at.index[1] : at.at(1), Expr(out_per_group));
    c.b().loop("ky", Expr(window.kernel[0]), [&](Expr ky) {
      const Coords row = meet(c, window, at, 2, ky, x[2]);
      c.b().loop("kx", Expr(window.kernel[1]), [&](Expr kx) {
        const Coords tap = meet(c, window, row, 3, kx, x[3]);
        c.b().loop("ic", Expr(in_per_group), [&](Expr ic) {
          const Expr channel = group * Expr(in_per_group) + ic;
          Coords weight = channel_coords(at);
          weight.axis = -1;
          const Expr m = (shared ? at.index[1] : at.at(1)) - group * Expr(out_per_group);
          weight.index = {channel, m, ky, kx};
          if (at.axis == 1 && shared) weight.axis = 1;
          const Expr a = kernel::cast({acc_type, 1}, c.load(0, tap.with(1, channel)));
          acc.set(multiply_add(a, kernel::cast({acc_type, 1}, c.load(1, weight)), acc.get()));
        });
      });
    });
    c.store(at, acc.get());
  });
}

}  // namespace

OpDef define_conv_transpose2d() {
  OpDef d;
  d.name = "ConvTranspose2D";
  d.doc =
      "y[n, m, i, j] = b[m] + sum over c, u, v, and y', x' with y' * s_h + u * d_h - p_t = i and x' * s_w + v * d_w - "
      "p_l = j, of x[n, c, y', x'] * w[c, m mod (M/G), u, v], c over the group of m (ONNX ConvTranspose).";
  d.inputs = {{"x", "[N, C, H, W]"}, {"w", "[C, M/G, kh, kw]"}, {"b", "[M]", true}};
  d.outputs = {{"y", "[N, M, H', W'], H' = (H - 1) * s_h + (kh - 1) * d_h + 1 - p_t - p_b + output_padding"}};
  d.attributes = window_attributes();
  d.attributes.push_back(optional("groups", AttrKind::integer, "G", int64_t{1}));
  d.attributes.push_back(optional("output_padding", AttrKind::integers, "added to the sizes", Ints{0, 0}));
  d.traits = kContraction | kBlockable | kImage | kEpilogueOk | kPure;
  d.dtypes = real_dtypes();
  d.infer = infer_conv_transpose;
  d.lower = lower_conv_transpose;
  d.flops = [](const ir::Node& n) {
    const Shape& w = n.input(1)->type.shape;
    return Dim(2) * num_elements(n.input(0)->type.shape) * w[1] * w[2] * w[3];
  };
  d.samples = [] {
    return std::vector<Sample>{
        {"by_hand",
         {f32({1, 1, 2, 2}), f32({1, 1, 2, 2}), f32({1})},
         {{"strides", Ints{2, 1}}},
         {{1, 2, 3, 4}, {1, -1, 2, 0.5}, {10}},
         {11, 11, 8, 12, 14.5, 11, 13, 11, 6, 16, 19.5, 12}},
        {"doubling", {f32({1, 24, 5, 6}), f32({24, 20, 2, 2}), f32({20})}, {{"strides", Ints{2, 2}}}},
        {"padded",
         {f32({2, 3, 5, 6}), f32({3, 5, 3, 3})},
         {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}, {"output_padding", Ints{1, 1}}}},
        {"dilated", {f32({1, 2, 4, 4}), f32({2, 3, 2, 2})}, {{"dilations", Ints{2, 3}}}},
        {"grouped", {f32({1, 4, 4, 4}), f32({4, 3, 3, 3})}, {{"groups", int64_t{2}}, {"strides", Ints{1, 2}}}},
        {"depthwise", {f32({1, 16, 4, 4}), f32({16, 1, 2, 2})}, {{"groups", int64_t{16}}, {"strides", Ints{2, 2}}}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
