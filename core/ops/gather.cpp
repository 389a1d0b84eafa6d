#include "core/ops/indexing.h"

namespace cuvil::ops {
namespace {

using kernel::Expr;

std::vector<ir::Type> infer_gather(const InferContext& c) {
  need_index(c, 1);
  const Shape& data = c.in(0).shape;
  const int axis = axis_of(c, c.node.attr<int64_t>("axis"), c.in(0).rank());
  ir::Type out{c.in(0).dtype, {data.begin(), data.begin() + axis}, {}};
  out.shape.insert(out.shape.end(), c.in(1).shape.begin(), c.in(1).shape.end());
  out.shape.insert(out.shape.end(), data.begin() + axis + 1, data.end());
  return {out};
}

void lower_gather(LowerContext& c) {
  const ir::Type& data = c.in_type(0);
  const int axis = axis_of(c.node(), data.rank()), depth = c.in_type(1).rank();
  const Expr size = c.dim(data.shape[static_cast<size_t>(axis)]);
  Walk walk;
  if (axis == data.rank() - 1) walk.max_lanes = 1;  // every element has an index of its own
  for_each(c, c.out_memory().type(), walk, [&](const Coords& at) {
    const std::vector<Expr>& i = at.index;
    const Expr index = checked_index(c, c.load(1, {i.begin() + axis, i.begin() + axis + depth}), size);
    Coords in = at;
    in.index.assign(i.begin(), i.begin() + axis);
    in.index.push_back(index);
    in.index.insert(in.index.end(), i.begin() + axis + depth, i.end());
    if (at.axis >= 0) in.axis = at.axis - depth + 1;
    c.store(at, c.load(0, in));
  });
}

}  // namespace

OpDef define_gather() {
  OpDef d;
  d.name = "Gather";
  d.doc =
      "y[i..., k..., j...] = data[i..., indices[k...], j...], the index on axis. Negative indices count from the end; "
      "one "
      "out of range fails at run time.";
  d.inputs = {{"data", "any shape"}, {"indices", "i64 or i32, any shape"}};
  d.outputs = {{"y", "data's shape with the axis replaced by the shape of indices"}};
  d.attributes = {optional("axis", AttrKind::integer, "the axis", int64_t{0})};
  d.traits = kEpilogueOk | kPure;
  d.dtypes = all_dtypes();
  d.infer = infer_gather;
  d.lower = lower_gather;
  d.flops = [](const ir::Node&) { return Dim(0); };
  d.samples = [] {
    return std::vector<Sample>{
        {"by_hand", {f32({3, 2}), i64({2})}, {}, {{1, 2, 3, 4, 5, 6}, {2, -3}}, {5, 6, 1, 2}},
        {"words", {f32({11, 37}), i64({2, 3})}, {}, {{}, {0, 10, -1, 5, -11, 3}}},
        {"columns", {f32({3, 5}), of(DType::i32, {4})}, {{"axis", int64_t{1}}}, {{}, {4, 0, -5, 2}}},
        {"middle", {i64({2, 4, 3}), i64({1, 2})}, {{"axis", int64_t{1}}}, {{}, {3, -2}}},
        {"one", {f32({4, 3}), i64({})}, {}, {{}, {1}}},
        {"none", {f32({4, 3}), i64({0})}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
