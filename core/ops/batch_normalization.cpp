#include "core/ops/normalization.h"
#include "core/ops/window.h"

namespace cuvil::ops {

OpDef define_batch_normalization() {
  OpDef d;
  d.name = "BatchNormalization";
  d.doc = "y[n, c, ...] = (x - mean[c]) / sqrt(variance[c] + epsilon) * scale[c] + bias[c] (inference).";
  d.inputs = {{"x", "[N, C, ...]"}, {"scale", "[C]"}, {"bias", "[C]"}, {"mean", "[C]"}, {"variance", "[C]"}};
  d.outputs = {{"y", "shape of x"}};
  d.attributes = {epsilon_attribute()};
  d.traits = kBlockable | kEpilogueOk | kPure;
  d.dtypes = real_dtypes();
  d.infer = [](const InferContext& c) {
    if (c.in(0).rank() < 2) c.fail("x needs an axis of channels");
    for (size_t i = 1; i < 5; ++i)
      if (c.in(i).shape != Shape{c.in(0).shape[1]}) c.fail("statistics need one value per channel");
    return std::vector<ir::Type>{{c.in(0).dtype, c.in(0).shape, {}}};
  };
  d.lower = [](LowerContext& c) {
    using kernel::Expr;
    const kernel::Type type{accumulator_type(c.in_type(0).dtype), 1};
    const double epsilon = c.node().attr<double>("epsilon");
    for_each(c, c.out_memory().type(), {}, [&](const Coords& at) {
      const auto channel = [&](size_t i) { return kernel::cast(type, c.load(i, channel_coords(at))); };
      const Expr variance = channel(4) + kernel::constant(type.with_lanes(at.lanes), epsilon);
      const Expr factor = channel(1) / kernel::make(kernel::Op::sqrt, {variance});
      c.store(at, (kernel::cast(type, c.load(0, at)) - channel(3)) * factor + channel(2));
    });
  };
  d.flops = [](const ir::Node& n) { return Dim(2) * num_elements(n.output()->type.shape); };
  d.samples = [] {
    const auto inputs = [](Shape x, Dim channels) {
      const ir::Type v = f32({channels});
      return std::vector<std::optional<ir::Type>>{f32(std::move(x)), v, v, v, v};
    };
    return std::vector<Sample>{
        {"by_hand",
         inputs({1, 2, 2}, 2),
         {{"epsilon", 0.0}},
         {{1, 2, 3, 4}, {1, 2}, {0, 1}, {0.5, -1}, {4, 0.25}},
         {0.25, 0.75, 17, 21}},
        {"image", inputs({2, 20, 5, 7}, 20), {}, {}, {}, 1e-5, {0.5, 2}},
        {"rows", inputs({5, 19}, 19), {}, {}, {}, 1e-5, {0.5, 2}},
        {"empty", inputs({0, 3, 4}, 3), {}, {}, {}, 1e-5, {0.5, 2}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
