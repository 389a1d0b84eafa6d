#include "core/ops/define.h"
#include "core/ops/loops.h"

namespace cuvil::ops {

OpDef define_one_hot() {
  OpDef d;
  d.name = "OneHot";
  d.doc =
      "y = values[1] where the position on the new axis is the index (a negative index counts from depth), else "
      "values[0]; "
      "an index out of range is met nowhere.";
  d.inputs = {{"indices", "any number type and shape"}, {"values", "[2]: off, on"}};
  d.outputs = {{"y", "shape of indices with a new axis of extent depth; type of values"}};
  d.attributes = {required("depth", AttrKind::integer, "extent of the new axis"),
                  optional("axis", AttrKind::integer, "where it is in y", int64_t{-1})};
  d.traits = kPure | kEpilogueOk;
  d.dtypes = {DType::i64, DType::i32, DType::u8, DType::f32, DType::f64, DType::i8, DType::i16, DType::u16, DType::u32};
  d.infer = [](const InferContext& c) {
    const int64_t depth = c.node.attr<int64_t>("depth");
    if (depth < 0) c.fail("depth must not be negative");
    if (c.in(1).shape != Shape{Dim(2)}) c.fail("values must be two numbers");
    ir::Type out{c.in(1).dtype, c.in(0).shape, {}};
    const int axis = axis_of(c, c.node.attr<int64_t>("axis"), c.in(0).rank() + 1);
    out.shape.insert(out.shape.begin() + axis, Dim(depth));
    return std::vector<ir::Type>{out};
  };
  d.lower = [](LowerContext& c) {
    using kernel::Expr;
    const int axis = axis_of(c.node(), c.out_type().rank());
    const int64_t depth = c.node().attr<int64_t>("depth");
    for_each(c, c.out_memory().type(), {}, [&](const Coords& at) {
      Expr index = c.b().let("i", kernel::cast({DType::i64, 1}, c.load(0, drop_axes(at, {axis}))));
      index = kernel::select(index < Expr(0), index + Expr(depth), index);
      const Expr off = kernel::broadcast(c.load(1, {Expr(0)}), at.lanes);
      const Expr on = kernel::broadcast(c.load(1, {Expr(1)}), at.lanes);
      c.store(at, kernel::select(index == kernel::broadcast(at.at(axis), at.lanes), on, off));
    });
  };
  d.flops = [](const ir::Node&) { return Dim(0); };
  d.samples = [] {
    return std::vector<Sample>{
        {"by_hand", {i64({3}), f32({2})}, {{"depth", int64_t{3}}}, {{0, -1, 7}, {0, 5}}, {5, 0, 0, 0, 0, 5, 0, 0, 0}},
        {"first", {of(DType::i32, {2, 19}), i64({2})}, {{"depth", int64_t{4}}, {"axis", int64_t{0}}}},
        {"middle", {f32({2, 3}), f32({2})}, {{"depth", int64_t{3}}, {"axis", int64_t{1}}}, {{0, 1, 2, 0, 1, 2}}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
