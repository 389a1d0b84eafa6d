#include "core/ops/define.h"
#include "core/ops/loops.h"
#include "core/ops/window.h"

namespace cuvil::ops {

OpDef define_lrn() {
  OpDef d =
      unary("LRN",
            "y[n, c, ...] = x / (bias + alpha / size * sum of x[n, c', ...]^2)^beta over the channels c' from c - "
            "floor((size - 1) / 2) to c + ceil((size - 1) / 2).",
            float_dtypes());
  d.attributes = {required("size", AttrKind::integer, "channels that are summed"),
                  optional("alpha", AttrKind::real, "scale", 1e-4), optional("beta", AttrKind::real, "exponent", 0.75),
                  optional("bias", AttrKind::real, "offset", 1.0)};
  d.traits = kBlockable | kEpilogueOk | kPure;
  d.infer = [](const InferContext& c) {
    if (c.in(0).rank() < 2) c.fail("x needs an axis of channels");
    if (c.node.attr<int64_t>("size") < 1) c.fail("size must be positive");
    return std::vector<ir::Type>{{c.in(0).dtype, c.in(0).shape, {}}};
  };
  d.lower = [](LowerContext& c) {
    using kernel::Expr;
    const ir::Node& node = c.node();
    const int64_t size = node.attr<int64_t>("size");
    const kernel::Type type{DType::f32, 1};
    const Expr channels = c.dim(c.in_type(0).shape[1]);
    Walk walk;
    walk.grain = 512;
    for_each(c, c.out_memory().type(), walk, [&](const Coords& at) {
      const kernel::Type lanes = type.with_lanes(at.lanes);
      Register sum(c.b(), "sum", kernel::constant(lanes, 0));
      c.b().loop("j", Expr(size), [&](Expr j) {
        const Expr channel = c.b().let("channel", at.at(1) + j - Expr((size - 1) / 2));
        const Coords neighbour = at.with(1, channel).only((channel >= Expr(0)) & (channel < channels));
        const Expr x = c.b().let("x", kernel::cast(type, c.load(0, neighbour)));
        sum.set(sum.get() + x * x);
      });
      const Expr base = kernel::constant(lanes, node.attr<double>("bias")) +
                        sum.get() * kernel::constant(lanes, node.attr<double>("alpha") / static_cast<double>(size));
      const Expr power = kernel::make(kernel::Op::pow, {base, kernel::constant(lanes, node.attr<double>("beta"))});
      c.store(at, kernel::cast(type, c.load(0, at)) / power);
    });
  };
  d.flops = [](const ir::Node& n) {
    return Dim(2 * n.attr<int64_t>("size") + 4) * num_elements(n.output()->type.shape);
  };
  d.samples = [] {
    return std::vector<Sample>{
        {"by_hand",
         {f32({1, 3, 1})},
         {{"size", int64_t{3}}, {"alpha", 3.0}, {"beta", 0.5}, {"bias", 1.0}},
         {{1, -2, 3}},
         {0.40824829, -0.516397779, 0.801783726}},
        {"image", {f32({2, 20, 5, 7})}, {{"size", int64_t{5}}, {"alpha", 0.1}}},
        {"even", {f32({1, 7, 3, 3})}, {{"size", int64_t{4}}, {"alpha", 0.5}}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
