#include "core/ops/indexing.h"

namespace cuvil::ops {

OpDef define_gather_elements() {
  OpDef d;
  d.name = "GatherElements";
  d.doc =
      "y[i, j, k] = data[i, indices[i, j, k], k] for axis 1. Negative indices count from the end; one out of range "
      "fails "
      "at run time.";
  d.inputs = {{"data", "any shape"}, {"indices", "i64 or i32, of data's rank; no larger than data beside axis"}};
  d.outputs = {{"y", "shape of indices"}};
  d.attributes = {optional("axis", AttrKind::integer, "the axis", int64_t{0})};
  d.traits = kPure | kEpilogueOk;
  d.dtypes = all_dtypes();
  d.infer = [](const InferContext& c) {
    need_index(c, 1);
    need_rank(c, 1, c.in(0).rank());
    const size_t axis = static_cast<size_t>(axis_of(c, c.node.attr<int64_t>("axis"), c.in(0).rank()));
    for (size_t a = 0; a < c.in(0).shape.size(); ++a)
      if (a != axis) c.require_equal(min(c.in(1).shape[a], c.in(0).shape[a]), c.in(1).shape[a], "size of indices");
    return std::vector<ir::Type>{{c.in(0).dtype, c.in(1).shape, {}}};
  };
  d.lower = [](LowerContext& c) {
    const int axis = axis_of(c.node(), c.in_type(0).rank());
    const kernel::Expr size = c.dim(c.in_type(0).shape[static_cast<size_t>(axis)]);
    Walk walk;
    walk.max_lanes = 1;
    for_each(c, c.out_memory().type(), walk,
             [&](const Coords& at) { c.store(at, c.load(0, at.with(axis, checked_index(c, c.load(1, at), size)))); });
  };
  d.flops = [](const ir::Node&) { return Dim(0); };
  d.samples = [] {
    return std::vector<Sample>{
        {"by_hand", {f32({2, 2}), i64({2, 2})}, {{"axis", int64_t{1}}}, {{1, 2, 3, 4}, {0, 0, 1, -2}}, {1, 1, 4, 3}},
        {"rows", {f32({3, 4}), i64({2, 4})}, {}, {{}, {1, 2, 0, 2, 0, 0, -1, -3}}},
        {"integers", {i64({5}), of(DType::i32, {3})}, {}, {{}, {4, 0, -2}}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
