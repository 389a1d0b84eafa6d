#include "core/ops/softmax.h"

#include "core/ops/normalization.h"
#include "core/ops/reduction.h"
#include "core/ops/window.h"

namespace cuvil::ops {

using kernel::Expr;
namespace k = cuvil::kernel;

OpDef softmax_like(std::string_view name, std::string_view doc) {
  OpDef d = unary(name, doc, real_dtypes());
  d.attributes = {optional("axis", AttrKind::integer, "the axis of a row", int64_t{-1})};
  d.traits = kRowwise | kBlockable | kEpilogueOk | kPure;
  d.infer = [](const InferContext& c) {
    axis_of(c, c.node.attr<int64_t>("axis"), c.in(0).rank());
    return std::vector<ir::Type>{{c.in(0).dtype, c.in(0).shape, {}}};
  };
  d.flops = [](const ir::Node& n) { return Dim(8) * num_elements(n.output()->type.shape); };
  return d;
}

SoftmaxRow softmax_row(LowerContext& c, ReduceNest& nest, const Coords& kept) {
  const k::Type type{accumulator_type(c.in_type(0).dtype), 1};
  const auto load = [&](const Coords& at) { return k::cast(type, c.load(0, at)); };
  SoftmaxRow row;
  row.max = nest.fold(kept, k::Op::max, neutral_of(k::Op::max, type.dtype), load);
  row.sum = nest.fold(kept, k::Op::add, k::constant(type, 0),
                      [&](const Coords& at) { return k::make(k::Op::exp, {load(at) - at_lanes(row.max, at)}); });
  return row;
}

std::vector<Sample> softmax_samples(std::vector<double> expected) {
  const auto along = [](int64_t axis) { return ir::Attributes{{"axis", axis}}; };
  return {
      {"by_hand", {f32({2, 3})}, along(-1), {{1, 2, 3, -1, 0, 100}}, std::move(expected)},
      {"rows", {f32({5, 37})}, along(1)},
      {"attention", {f32({2, 3, 9, 17})}, along(3)},
      {"columns", {f32({7, 19})}, along(0)},
      {"channels", {f32({2, 20, 3, 5})}, along(1)},
      {"one", {f32({3, 1})}, along(1)},
      {"empty", {f32({0, 3})}, along(1)},
  };
}

OpDef define_softmax() {
  OpDef d = softmax_like("Softmax", "y = e^(x - m) / sum of e^(x - m) along axis, m the maximum along axis.");
  d.lower = [](LowerContext& c) {
    ReduceNest nest(c, c.in_type(0), {axis_of(c.node(), c.in_type(0).rank())});
    nest.for_each_kept(
        [&](const Coords& kept) {
          const SoftmaxRow row = softmax_row(c, nest, kept);
          const Expr factor = c.b().let("factor", k::constant(row.sum.type(), 1) / row.sum);
          nest.over(kept, [&](const Coords& at) {
            const Expr x = k::cast(row.max.type().element(), c.load(0, at));
            c.store(at, k::make(k::Op::exp, {x - at_lanes(row.max, at)}) * at_lanes(factor, at));
          });
        },
        16);
  };
  d.samples = [] { return softmax_samples({0.0900305732, 0.244728471, 0.665240956, 0, 0, 1}); };
  return d;
}

}  // namespace cuvil::ops
