#include "core/ops/define.h"
#include "core/ops/loops.h"

namespace cuvil::ops {
namespace {

std::vector<ir::Type> infer_concat(const InferContext& c) {
  ir::Type out = c.in(0);
  out.layout = {};
  const size_t axis = static_cast<size_t>(axis_of(c, c.node.attr<int64_t>("axis"), out.rank()));
  for (size_t i = 1; i < c.inputs().size(); ++i) {
    same_dtype(c, i);
    need_rank(c, i, out.rank());
    const Shape& part = c.in(i).shape;
    for (size_t a = 0; a < part.size(); ++a)
      if (a != axis) c.require_equal(out.shape[a], part[a], "sizes beside the axis");
    out.shape[axis] = out.shape[axis] + part[axis];
  }
  return {out};
}

void lower_concat(LowerContext& c) {
  const int axis = axis_of(c.node(), c.out_type().rank());
  const bool blocked = !c.out_memory().type().layout.blocks.empty();
  Dim offset = 0;
  for (size_t i = 0; i < c.node().inputs().size(); ++i) {
    const ir::Type& part = c.in_type(i);
    const kernel::Expr shift = c.dim(offset);
    for_each(c, part, {}, [&](const Coords& at) {
      Coords from = at;
      c.store(from.shifted(axis, shift, blocked), c.load(i, at));
    });
    offset = offset + part.shape[static_cast<size_t>(axis)];
  }
}

}  // namespace

OpDef define_concat() {
  OpDef d;
  d.name = "Concat";
  d.doc = "The inputs side by side along axis.";
  d.inputs = {{"parts", "of equal sizes but for axis", false, true}};
  d.outputs = {{"y", "sizes along axis added"}};
  d.attributes = {required("axis", AttrKind::integer, "the axis")};
  d.traits = kConcat | kBlockable | kEpilogueOk | kPure;
  d.dtypes = all_dtypes();
  d.infer = infer_concat;
  d.lower = lower_concat;
  d.flops = [](const ir::Node&) { return Dim(0); };
  d.fold = [](ir::Graph&, ir::Node& node) -> ir::Value* {
    return node.inputs().size() == 1 && node.input(0)->type == node.output()->type ? node.input(0) : nullptr;
  };
  d.samples = [] {
    const auto along = [](int64_t axis) { return ir::Attributes{{"axis", axis}}; };
    return std::vector<Sample>{
        {"by_hand", {f32({2, 1}), f32({2, 2})}, along(1), {{1, 2}, {3, 4, 5, 6}}, {1, 3, 4, 2, 5, 6}},
        {"rows", {f32({2, 19}), f32({3, 19}), f32({1, 19})}, along(0)},
        {"columns", {f32({3, 17}), f32({3, 5})}, along(-1)},
        {"channels", {f32({2, 16, 3, 5}), f32({2, 24, 3, 5})}, along(1)},
        {"odd_channels", {f32({2, 20, 3, 5}), f32({2, 7, 3, 5})}, along(1)},
        {"one", {i64({3})}, along(0)},
        {"empty", {i64({3, 2}), i64({0, 2})}, along(0)},
    };
  };
  return d;
}

}  // namespace cuvil::ops
