#include "core/ops/define.h"
#include "core/ops/loops.h"
#include "core/ops/window.h"

namespace cuvil::ops {
namespace {

using kernel::Expr;

void lower_cumsum(LowerContext& c) {
  const ir::Node& node = c.node();
  const ir::Type& x = c.in_type(0);
  const int axis = axis_of(node, x.rank());
  const bool exclusive = node.attr<int64_t>("exclusive") != 0, reverse = node.attr<int64_t>("reverse") != 0;
  const DType dtype = accumulator_type(x.dtype);
  const Expr extent = c.dim(x.shape[static_cast<size_t>(axis)]);
  ReduceNest nest(c, x, {axis}, /*along=*/false);
  nest.for_each_kept([&](const Coords& kept) {
    Register sum(c.b(), "sum", kernel::broadcast(kernel::constant({dtype, 1}, 0), kept.lanes));
    c.b().loop("i", extent, [&](Expr i) {
      const Coords at = kept.with(axis, reverse ? extent - Expr(1) - i : i);
      const Expr before = c.b().let("before", sum.get());
      const Expr after = c.b().let("after", before + kernel::cast({dtype, 1}, c.load(0, at)));
      sum.set(after);
      c.store(at, exclusive ? before : after);
    });
  });
}

}  // namespace

OpDef define_cumsum() {
  OpDef d = unary("CumSum", "y[.., i, ..] = x[.., 0, ..] + ... + x[.., i, ..] along axis.", number_dtypes());
  d.attributes = {required("axis", AttrKind::integer, "the axis"),
                  optional("exclusive", AttrKind::integer, "1: element i itself is left out", int64_t{0}),
                  optional("reverse", AttrKind::integer, "1: sums begin at the end", int64_t{0})};
  d.traits = kBlockable | kPure;
  d.infer = [](const InferContext& c) {
    axis_of(c, c.node.attr<int64_t>("axis"), c.in(0).rank());
    return std::vector<ir::Type>{{c.in(0).dtype, c.in(0).shape, {}}};
  };
  d.lower = lower_cumsum;
  d.samples = [] {
    const auto over = [](int64_t axis, int64_t exclusive, int64_t reverse) {
      return ir::Attributes{{"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}};
    };
    return std::vector<Sample>{
        {"by_hand", {f32({2, 3})}, over(1, 0, 0), {{1, 2, 3, 4, 5, 6}}, {1, 3, 6, 4, 9, 15}},
        {"exclusive", {f32({4})}, over(0, 1, 0), {{1, 2, 3, 4}}, {0, 1, 3, 6}},
        {"reverse", {f32({4})}, over(0, 0, 1), {{1, 2, 3, 4}}, {10, 9, 7, 4}},
        {"columns", {i64({5, 19})}, over(0, 1, 1)},
        {"image", {f32({2, 20, 3, 5})}, over(1, 0, 0)},
    };
  };
  return d;
}

}  // namespace cuvil::ops
