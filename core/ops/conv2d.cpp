#include "core/base/error.h"
#include "core/ops/builder.h"
#include "core/ops/define.h"
#include "core/ops/loops.h"
#include "core/ops/window.h"

namespace cuvil::ops {
namespace {

using kernel::Expr;

std::vector<ir::Type> infer_conv2d(const InferContext& c) {
  check_conv(c);
  const Shape& x = c.in(0).shape;
  const Shape& w = c.in(1).shape;
  const int64_t groups = c.node.attr<int64_t>("groups");
  if (w[0].value() % groups != 0) c.fail("output channels are not a multiple of groups");
  c.require_equal(x[1], w[1] * Dim(groups), "channels of the input, and those that weight and groups ask for");
  check_bias(c, w[0]);
  const Window window = window_of(c, Ints{w[2].value(), w[3].value()});
  return {{c.in(0).dtype, {x[0], w[0], window.out_size(c, x[2], 0), window.out_size(c, x[3], 1)}, {}}};
}

void lower_conv2d(LowerContext& c) {
  const ir::Node& node = c.node();
  const Shape& x = c.in_type(0).shape;
  const Shape& w = c.in_type(1).shape;
  const int64_t groups = node.attr<int64_t>("groups");
  const int64_t in_per_group = w[1].value(), out_per_group = w[0].value() / groups;
  const bool depthwise = in_per_group == 1 && out_per_group == 1;
  const Window window = Window::of(node, Ints{w[2].value(), w[3].value()});
  const DType acc_type = accumulator_type(c.in_type(0).dtype);
  const int64_t work = in_per_group * window.kernel[0] * window.kernel[1];

  Walk walk;
  walk.grain = std::max<int64_t>(64, 65536 / std::max<int64_t>(1, work));
  for_each(c, c.out_memory().type(), walk, [&](const Coords& at) {
    Register acc(c.b(), "acc", bias_at(c, at));
    // First input channel of the output channel's group: one for all lanes unless they span groups.
    Expr first = 0;
    if (groups > 1 && !depthwise) {
      const bool shared = at.axis != 1 || out_per_group % at.lanes == 0;
      first = kernel::floordiv(shared ? at.index[1] : at.at(1), Expr(out_per_group)) * Expr(in_per_group);
    }
    c.b().loop("ic", Expr(in_per_group), [&](Expr ic) {
      window.for_each_tap(c, at, x[2], x[3], [&](const Coords& tap, Expr ky, Expr kx) {
        const Coords in = depthwise ? tap : tap.with(1, first + ic);
        Coords weight = channel_coords(at);
        weight.index = {at.index[1], ic, ky, kx};
        const Expr a = kernel::cast({acc_type, 1}, c.load(0, in));
        const Expr b = kernel::cast({acc_type, 1}, c.load(1, weight));
        acc.set(multiply_add(a, b, acc.get()));
      });
    });
    c.store(at, acc.get());
  });
}

/// Zeros that a Pad puts around the image are the convolution's own padding.
ir::Value* fold_conv2d(ir::Graph& graph, ir::Node& node) {
  const ir::Node* pad = node.input(0)->producer;
  if (!pad || pad->op != "Pad" || pad->attr<std::string>("mode") != "constant" || pad->attr<double>("value") != 0 ||
      pad->inputs().size() != 1)
    return nullptr;
  const Ints& p = pad->attr<Ints>("pads");
  if (p.size() != 8 || p[0] || p[1] || p[4] || p[5]) return nullptr;
  ir::Attributes attributes = node.attributes;
  Ints& own = std::get<Ints>(attributes.at("pads"));
  const size_t axes[] = {2, 3, 6, 7};
  for (size_t i = 0; i < 4; ++i) {
    if (p[axes[i]] < 0) return nullptr;
    own[i] += p[axes[i]];
  }
  Builder builder(graph, &node);
  builder.at(node.location);
  std::vector<ir::Value*> inputs = node.inputs();
  inputs[0] = pad->input(0);
  return builder.add(node.op, std::move(inputs), std::move(attributes));
}

}  // namespace

OpDef define_conv2d() {
  OpDef d;
  d.name = "Conv2D";
  d.doc =
      "y[n, m, i, j] = b[m] + sum over c, u, v of x[n, g*C/G + c, i*s_h - p_t + u*d_h, j*s_w - p_l + v*d_w] * "
      "w[m, c, u, v], with g = floor(m / (M/G)); x is 0 outside (ONNX Conv).";
  d.inputs = {{"x", "[N, C, H, W]"}, {"w", "[M, C/G, kh, kw]"}, {"b", "[M]", true}};
  d.outputs = {{"y", "[N, M, H', W']"}};
  d.attributes = window_attributes();
  d.attributes.push_back(optional("groups", AttrKind::integer, "G", int64_t{1}));
  d.traits = kContraction | kBlockable | kImage | kEpilogueOk | kPure;
  d.dtypes = number_dtypes();
  d.infer = infer_conv2d;
  d.fold = fold_conv2d;
  d.lower = lower_conv2d;
  d.flops = [](const ir::Node& n) {
    const Shape& w = n.input(1)->type.shape;
    return Dim(2) * num_elements(n.output()->type.shape) * w[1] * w[2] * w[3];
  };
  d.samples = [] {
    return std::vector<Sample>{
        {"by_hand",
         {f32({1, 1, 3, 3}), f32({1, 1, 2, 2}), f32({1})},
         {},
         {{1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, -1, 2, 0.5}, {10}},
         {19.5, 22, 27, 29.5}},
        {"padded", {f32({2, 3, 8, 9}), f32({20, 3, 3, 3}), f32({20})}, {{"pads", Ints{1, 1, 1, 1}}}},
        {"strided", {f32({1, 5, 9, 11}), f32({16, 5, 3, 2})}, {{"strides", Ints{2, 3}}, {"pads", Ints{1, 0, 2, 1}}}},
        {"dilated", {f32({1, 4, 12, 12}), f32({6, 4, 3, 3})}, {{"dilations", Ints{2, 3}}, {"pads", Ints{2, 3, 2, 3}}}},
        {"pointwise", {f32({2, 32, 7, 5}), f32({48, 32, 1, 1}), f32({48})}},
        {"depthwise",
         {f32({1, 20, 9, 9}), f32({20, 1, 3, 3}), f32({20})},
         {{"groups", int64_t{20}}, {"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}}},
        {"grouped", {f32({1, 12, 6, 6}), f32({8, 3, 3, 3})}, {{"groups", int64_t{4}}}},
        {"wide_groups",
         {f32({1, 32, 5, 5}), f32({64, 16, 3, 3})},
         {{"groups", int64_t{2}}, {"pads", Ints{1, 1, 1, 1}}}},
        {"multiplier", {f32({1, 3, 6, 6}), f32({6, 1, 3, 3})}, {{"groups", int64_t{3}}}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
