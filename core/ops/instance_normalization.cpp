#include "core/ops/normalization.h"
#include "core/ops/window.h"

namespace cuvil::ops {

OpDef define_instance_normalization() {
  OpDef d;
  d.name = "InstanceNormalization";
  d.doc =
      "y[n, c, ...] = (x - mean) / sqrt(variance + epsilon) * scale[c] + bias[c]; mean and variance over the axes "
      "after "
      "the channels.";
  d.inputs = {{"x", "[N, C, ...]"}, {"scale", "[C]"}, {"bias", "[C]"}};
  d.outputs = {{"y", "shape of x"}};
  d.attributes = {epsilon_attribute()};
  d.traits = kBlockable | kEpilogueOk | kPure;
  d.dtypes = real_dtypes();
  d.infer = [](const InferContext& c) {
    if (c.in(0).rank() < 3) c.fail("x needs axes of batch, channels and space");
    for (size_t i = 1; i < 3; ++i) {
      same_dtype(c, i);
      if (c.in(i).shape != Shape{c.in(0).shape[1]}) c.fail("scale and bias need one value per channel");
    }
    return std::vector<ir::Type>{{c.in(0).dtype, c.in(0).shape, {}}};
  };
  d.lower = [](LowerContext& c) {
    using kernel::Expr;
    const ir::Type& x = c.in_type(0);
    const kernel::Type type{accumulator_type(x.dtype), 1};
    std::vector<int> axes;
    for (int a = 2; a < x.rank(); ++a) axes.push_back(a);
    ReduceNest nest(c, x, axes);
    nest.for_each_kept(
        [&](const Coords& kept) {
          const RowStatistics row = statistics(c, nest, kept, c.node().attr<double>("epsilon"));
          const auto channel = [&](size_t i) { return kernel::cast(type, c.load(i, channel_coords(kept))); };
          const Expr factor = c.b().let("scale", row.factor * channel(1)), bias = c.b().let("bias", channel(2));
          nest.over(kept, [&](const Coords& at) {
            const Expr deviation = kernel::cast(type, c.load(0, at)) - at_lanes(row.mean, at);
            c.store(at, deviation * at_lanes(factor, at) + at_lanes(bias, at));
          });
        },
        16);
  };
  d.flops = [](const ir::Node& n) { return Dim(7) * num_elements(n.output()->type.shape); };
  d.samples = [] {
    return std::vector<Sample>{
        {"by_hand",
         {f32({1, 2, 2}), f32({2}), f32({2})},
         {{"epsilon", 0.0}},
         {{1, 3, 4, 0}, {1, 2}, {0, 1}},
         {-1, 1, 3, -1}},
        {"image", {f32({2, 20, 5, 7}), f32({20}), f32({20})}},
        {"wide", {f32({1, 3, 4, 40}), f32({3}), f32({3})}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
