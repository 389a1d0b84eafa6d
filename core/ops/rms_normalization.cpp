#include "core/ops/normalization.h"
#include "core/ops/window.h"

namespace cuvil::ops {
namespace {

using kernel::Expr;

void lower_rms_norm(LowerContext& c) {
  const ir::Node& node = c.node();
  const ir::Type& x = c.in_type(0);
  const kernel::Type type{accumulator_type(x.dtype), 1};
  std::vector<int> axes;
  for (int a = axis_of(node, x.rank()); a < x.rank(); ++a) axes.push_back(a);
  ReduceNest nest(c, x, axes);
  const auto load = [&](const Coords& at) { return kernel::cast(type, c.load(0, at)); };
  nest.for_each_kept(
      [&](const Coords& kept) {
        const Expr squares = nest.fold(kept, kernel::Op::add, kernel::constant(type, 0), [&](const Coords& at) {
          const Expr v = c.b().let("x", load(at));
          return v * v;
        });
        const kernel::Type row = type.with_lanes(kept.lanes);
        const Expr count = kernel::broadcast(kernel::cast(type, c.dim(nest.count())), kept.lanes);
        const Expr mean = squares / count + kernel::constant(row, node.attr<double>("epsilon"));
        const Expr factor = c.b().let("factor", kernel::constant(row, 1) / kernel::make(kernel::Op::sqrt, {mean}));
        nest.over(kept, [&](const Coords& at) {
          const Coords own = broadcast_coords(at, x.shape, c.in_type(1).shape);
          c.store(at, load(at) * at_lanes(factor, at) * kernel::cast(type, c.load(1, own)));
        });
      },
      1);
}

}  // namespace

OpDef define_rms_normalization() {
  OpDef d;
  d.name = "RMSNormalization";
  d.doc = "y = x / sqrt(mean of x^2 + epsilon) * scale, the mean over the axes from `axis` on.";
  d.inputs = {{"x", "any shape"}, {"scale", "broadcasts to x"}};
  d.outputs = {{"y", "shape of x"}};
  d.attributes = {optional("axis", AttrKind::integer, "first normalised axis", int64_t{-1}), epsilon_attribute()};
  d.traits = kRowwise | kEpilogueOk | kPure;
  d.dtypes = real_dtypes();
  d.infer = [](const InferContext& c) {
    axis_of(c, c.node.attr<int64_t>("axis"), c.in(0).rank());
    same_dtype(c, 1);
    if (c.in(1).rank() > c.in(0).rank() || broadcast(c, c.in(0).shape, c.in(1).shape) != c.in(0).shape)
      c.fail("scale must broadcast to the shape of x");
    return std::vector<ir::Type>{{c.in(0).dtype, c.in(0).shape, {}}};
  };
  d.lower = lower_rms_norm;
  d.flops = [](const ir::Node& n) { return Dim(4) * num_elements(n.output()->type.shape); };
  d.samples = [] {
    return std::vector<Sample>{
        {"by_hand", {f32({1, 2}), f32({2})}, {{"epsilon", 0.5}}, {{3, -1}, {1, 2}}, {1.27920430, -0.852802865}},
        {"rows", {f32({2, 5, 37}), f32({37})}},
        {"two_axes", {f32({2, 3, 16}), f32({3, 16})}, {{"axis", int64_t{1}}}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
