#include "core/ops/cumulative.h"

#include "core/ops/loops.h"
#include "core/ops/window.h"

namespace cuvil::ops {
namespace {

using kernel::Expr;

void lower_cumulative(LowerContext& c, kernel::Op op, double start) {
  const ir::Node& node = c.node();
  const ir::Type& x = c.in_type(0);
  const int axis = axis_of(node, x.rank());
  const bool exclusive = node.attr<int64_t>("exclusive") != 0, reverse = node.attr<int64_t>("reverse") != 0;
  const DType dtype = accumulator_type(x.dtype);
  const Expr extent = c.dim(x.shape[static_cast<size_t>(axis)]);
  ReduceNest nest(c, x, {axis}, /*along=*/false);
  nest.for_each_kept([&](const Coords& kept) {
    Register total(c.b(), "total", kernel::broadcast(kernel::constant({dtype, 1}, start), kept.lanes));
    c.b().loop("i", extent, [&](Expr i) {
      const Coords at = kept.with(axis, reverse ? extent - Expr(1) - i : i);
      const Expr before = c.b().let("before", total.get());
      const Expr after = c.b().let("after", kernel::make(op, {before, kernel::cast({dtype, 1}, c.load(0, at))}));
      total.set(after);
      c.store(at, exclusive ? before : after);
    });
  });
}

}  // namespace

OpDef cumulative(std::string_view name, std::string_view doc, kernel::Op op, double start) {
  OpDef d = unary(name, doc, number_dtypes());
  d.attributes = {required("axis", AttrKind::integer, "the axis"),
                  optional("exclusive", AttrKind::integer, "1: element i itself is left out", int64_t{0}),
                  optional("reverse", AttrKind::integer, "1: begin at the end", int64_t{0})};
  d.traits = kBlockable | kPure;
  d.infer = [](const InferContext& c) {
    axis_of(c, c.node.attr<int64_t>("axis"), c.in(0).rank());
    return std::vector<ir::Type>{{c.in(0).dtype, c.in(0).shape, {}}};
  };
  d.lower = [op, start](LowerContext& c) { lower_cumulative(c, op, start); };
  return d;
}

}  // namespace cuvil::ops
