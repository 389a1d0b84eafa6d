#include "core/ops/normalization.h"
#include "core/ops/window.h"

namespace cuvil::ops {
namespace {

using kernel::Expr;

std::vector<ir::Type> infer_layer_norm(const InferContext& c) {
  const Shape& x = c.in(0).shape;
  axis_of(c, c.node.attr<int64_t>("axis"), c.in(0).rank());
  for (size_t i = 1; i < 3; ++i) {
    if (!c.has_in(i)) continue;
    same_dtype(c, i);
    if (c.in(i).rank() > c.in(0).rank() || broadcast(c, x, c.in(i).shape) != x)
      c.fail("scale and bias must broadcast to the shape of x");
  }
  return {{c.in(0).dtype, x, {}}};
}

void lower_layer_norm(LowerContext& c) {
  const ir::Node& node = c.node();
  const ir::Type& x = c.in_type(0);
  const kernel::Type type{accumulator_type(x.dtype), 1};
  std::vector<int> axes;
  for (int a = axis_of(node, x.rank()); a < x.rank(); ++a) axes.push_back(a);
  ReduceNest nest(c, x, axes);
  nest.for_each_kept(
      [&](const Coords& kept) {
        const RowStatistics row = statistics(c, nest, kept, node.attr<double>("epsilon"));
        nest.over(kept, [&](const Coords& at) {
          const auto operand = [&](size_t i) {
            return kernel::cast(type, c.load(i, broadcast_coords(at, x.shape, c.in_type(i).shape)));
          };
          Expr y = (kernel::cast(type, c.load(0, at)) - at_lanes(row.mean, at)) * at_lanes(row.factor, at);
          y = y * operand(1);
          if (c.has_in(2)) y = y + operand(2);
          c.store(at, y);
        });
      },
      1);
}

}  // namespace

OpDef define_layer_normalization() {
  OpDef d;
  d.name = "LayerNormalization";
  d.doc =
      "y = (x - mean) / sqrt(variance + epsilon) * scale + bias; mean and variance (of the population) over the axes "
      "from "
      "`axis` on.";
  d.inputs = {{"x", "any shape"}, {"scale", "broadcasts to x"}, {"bias", "broadcasts to x", true}};
  d.outputs = {{"y", "shape of x"}};
  d.attributes = {optional("axis", AttrKind::integer, "first normalised axis", int64_t{-1}), epsilon_attribute()};
  d.traits = kRowwise | kEpilogueOk | kPure;
  d.dtypes = real_dtypes();
  d.infer = infer_layer_norm;
  d.lower = lower_layer_norm;
  d.flops = [](const ir::Node& n) { return Dim(7) * num_elements(n.output()->type.shape); };
  d.samples = [] {
    return std::vector<Sample>{
        {"by_hand",
         {f32({2, 3}), f32({3}), f32({3})},
         {},
         {{1, 2, 6, -1, 0.5, 0}, {1, 2, -1}, {0, 0.5, 1}},
         {-0.925819, -0.425819, -0.388728, -1.33629, 2.63806, 0.732742},
         1e-4},
        {"bert", {f32({2, 5, 37}), f32({37}), f32({37})}},
        {"no_bias", {f32({3, 16}), f32({16})}},
        {"two_axes", {f32({2, 3, 4, 5}), f32({4, 5}), f32({4, 5})}, {{"axis", int64_t{2}}}},
        {"f16", {of(DType::f16, {3, 16}), of(DType::f16, {16})}},
        {"empty", {f32({0, 16}), f32({16})}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
