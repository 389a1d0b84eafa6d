#include "core/ops/define.h"
#include "core/ops/loops.h"

namespace cuvil::ops {
namespace {

using kernel::Expr;

std::vector<ir::Type> infer_slice(const InferContext& c) {
  const Shape& x = c.in(0).shape;
  const Shape& begin = c.node.attr<Shape>("begin");
  const Shape& size = c.node.attr<Shape>("size");
  const Ints& step = c.node.attr<Ints>("step");
  if (begin.size() != x.size() || size.size() != x.size() || step.size() != x.size())
    c.fail("begin, size and step need one number per axis");
  for (size_t a = 0; a < x.size(); ++a) {
    if (step[a] == 0) c.fail("a step must not be 0");
    if (size[a].as_const() == 0) continue;
    const Dim last = begin[a] + (size[a] - Dim(1)) * Dim(step[a]);
    const Dim low = step[a] > 0 ? begin[a] : last, high = step[a] > 0 ? last : begin[a];
    const auto outside = [](const std::optional<int64_t>& v) { return v && *v < 0; };
    if (outside(low.as_const()) || outside((x[a] - high - Dim(1)).as_const()) || outside(size[a].as_const()))
      c.fail("axis " + std::to_string(a) + " is sliced outside of its extent of " + x[a].str());
    // Open bounds are checked for every new shape; a slice of no elements may begin anywhere.
    if (size[a].is_const() || step[a] == 1) c.require_equal(max(low, Dim(0)), low, "begin of a slice");
    if (size[a].is_const() || step[a] == 1) c.require_equal(min(x[a], high + Dim(1)), high + Dim(1), "end of a slice");
  }
  return {{c.in(0).dtype, size, {}}};
}

void lower_slice(LowerContext& c) {
  const Shape& begin = c.node().attr<Shape>("begin");
  const Ints& step = c.node().attr<Ints>("step");
  const bool blocked = !c.in_type(0).layout.blocks.empty();
  const std::vector<Expr> first = c.extents(begin);
  for_each(c, c.out_memory().type(), {}, [&](const Coords& at) {
    Coords in = at;
    for (int a = 0; a < c.out_type().rank(); ++a) {
      const size_t i = static_cast<size_t>(a);
      in = step[i] == 1 ? in.shifted(a, first[i], blocked) : in.moved(a, Expr(step[i]), first[i]);
    }
    c.store(at, c.load(0, in));
  });
}

}  // namespace

OpDef define_slice() {
  OpDef d;
  d.name = "Slice";
  d.doc =
      "y[i, ...] = x[begin[0] + i * step[0], ...] for i < size[0], on every axis. Split is imported as several of "
      "these.";
  d.inputs = {{"x", "any shape"}};
  d.outputs = {{"y", "of shape size"}};
  d.attributes = {required("begin", AttrKind::shape, "first index per axis, not negative"),
                  required("size", AttrKind::shape, "sizes of y"),
                  required("step", AttrKind::integers, "per axis, may be negative, not 0")};
  d.traits = kBlockable | kEpilogueOk | kPure;
  d.dtypes = all_dtypes();
  d.infer = infer_slice;
  d.lower = lower_slice;
  d.flops = [](const ir::Node&) { return Dim(0); };
  d.fold = [](ir::Graph&, ir::Node& node) -> ir::Value* {
    for (int64_t s : node.attr<Ints>("step"))
      if (s != 1) return nullptr;
    return node.input(0)->type == node.output()->type ? node.input(0) : nullptr;
  };
  d.samples = [] {
    const auto cut = [](Shape begin, Shape size, Ints step) {
      return ir::Attributes{{"begin", std::move(begin)}, {"size", std::move(size)}, {"step", std::move(step)}};
    };
    return std::vector<Sample>{
        {"by_hand", {f32({2, 4})}, cut({0, 1}, {2, 2}, {1, 2}), {{1, 2, 3, 4, 5, 6, 7, 8}}, {2, 4, 6, 8}},
        {"backwards", {f32({4})}, cut({3}, {4}, {-1}), {{1, 2, 3, 4}}, {4, 3, 2, 1}},
        {"row", {f32({5, 37})}, cut({2, 0}, {1, 37}, {1, 1})},
        {"columns", {f32({5, 37})}, cut({0, 3}, {5, 30}, {1, 1})},
        {"channels", {f32({2, 40, 3, 5})}, cut({0, 16, 0, 0}, {2, 24, 3, 5}, {1, 1, 1, 1})},
        {"odd_channels", {f32({1, 40, 3, 5})}, cut({0, 5, 1, 0}, {1, 20, 2, 3}, {1, 1, 1, 2})},
        {"nothing", {i64({4, 3})}, cut({4, 0}, {0, 3}, {1, 1})},
    };
  };
  return d;
}

}  // namespace cuvil::ops
