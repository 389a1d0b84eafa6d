#include "core/ops/define.h"
#include "core/ops/loops.h"

namespace cuvil::ops {

OpDef define_reverse_sequence() {
  OpDef d;
  d.name = "ReverseSequence";
  d.doc = "The first lengths[b] elements along time_axis of every batch entry b in reverse order, the rest as it is.";
  d.inputs = {{"x", "two axes at least"}, {"lengths", "i64, one per batch entry"}};
  d.outputs = {{"y", "shape of x"}};
  d.attributes = {optional("batch_axis", AttrKind::integer, "0 or 1", int64_t{1}),
                  optional("time_axis", AttrKind::integer, "the other one", int64_t{0})};
  d.traits = kPure | kEpilogueOk;
  d.dtypes = all_dtypes();
  d.infer = [](const InferContext& c) {
    const int rank = c.in(0).rank();
    const int batch = axis_of(c, c.node.attr<int64_t>("batch_axis"), rank, "batch_axis");
    if (batch == axis_of(c, c.node.attr<int64_t>("time_axis"), rank, "time_axis")) c.fail("the axes must differ");
    need_dtype(c, 1, DType::i64);
    need_rank(c, 1, 1);
    c.require_equal(c.in(1).shape[0], c.in(0).shape[static_cast<size_t>(batch)], "batch sizes");
    return std::vector<ir::Type>{{c.in(0).dtype, c.in(0).shape, {}}};
  };
  d.lower = [](LowerContext& c) {
    using kernel::Expr;
    const int rank = c.in_type(0).rank();
    const int batch = axis_of(c.node(), rank, "batch_axis"), time = axis_of(c.node(), rank, "time_axis");
    const Expr extent = c.dim(c.in_type(0).shape[static_cast<size_t>(time)]);
    Walk walk;
    if (batch == rank - 1 || time == rank - 1) walk.max_lanes = 1;
    for_each(c, c.out_memory().type(), walk, [&](const Coords& at) {
      const Expr t = at.index[static_cast<size_t>(time)];
      const Expr length = c.b().let("length", c.load(1, {at.index[static_cast<size_t>(batch)]}));
      const Expr end = kernel::min(kernel::max(length, Expr(0)), extent);
      c.store(at, c.load(0, at.with(time, kernel::select(t < end, end - Expr(1) - t, t))));
    });
  };
  d.flops = [](const ir::Node&) { return Dim(0); };
  d.samples = [] {
    return std::vector<Sample>{
        {"by_hand", {f32({3, 2}), i64({2})}, {}, {{1, 2, 3, 4, 5, 6}, {2, 3}}, {3, 6, 1, 4, 5, 2}},
        {"rows", {f32({2, 5, 19}), i64({2})}, {{"batch_axis", int64_t{0}}, {"time_axis", int64_t{1}}}, {{}, {4, 1}}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
