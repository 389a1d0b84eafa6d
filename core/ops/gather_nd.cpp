#include "core/ops/indexing.h"

namespace cuvil::ops {
namespace {

using kernel::Expr;

/// Batch axes, and axes that one tuple of indices addresses.
struct Split {
  int batch, depth;
  static Split of(const ir::Node& node) {
    return {static_cast<int>(node.attr<int64_t>("batch_dims")),
            static_cast<int>(node.input(1)->type.shape.back().as_const().value_or(0))};
  }
};

std::vector<ir::Type> infer_gather_nd(const InferContext& c) {
  need_index(c, 1);
  const Shape& data = c.in(0).shape;
  const Shape& indices = c.in(1).shape;
  if (indices.empty() || !indices.back().is_const()) c.fail("the last size of indices must be known");
  const Split s = Split::of(c.node);
  if (s.batch < 0 || s.batch >= c.in(1).rank() || s.batch + s.depth > c.in(0).rank() || s.depth < 1)
    c.fail("batch_dims and the last size of indices do not fit the data");
  for (int a = 0; a < s.batch; ++a)
    c.require_equal(data[static_cast<size_t>(a)], indices[static_cast<size_t>(a)], "batch sizes");
  ir::Type out{c.in(0).dtype, {indices.begin(), indices.end() - 1}, {}};
  out.shape.insert(out.shape.end(), data.begin() + s.batch + s.depth, data.end());
  return {out};
}

void lower_gather_nd(LowerContext& c) {
  const ir::Type& data = c.in_type(0);
  const Split s = Split::of(c.node());
  const int outer = c.in_type(1).rank() - 1;  // axes of the result that say which tuple
  Walk walk;
  if (s.batch + s.depth == data.rank()) walk.max_lanes = 1;
  for_each(c, c.out_memory().type(), walk, [&](const Coords& at) {
    Coords in = at;
    in.index.assign(at.index.begin(), at.index.begin() + s.batch);
    for (int d = 0; d < s.depth; ++d) {
      std::vector<Expr> tuple(at.index.begin(), at.index.begin() + outer);
      tuple.push_back(Expr(d));
      const Expr size = c.dim(data.shape[static_cast<size_t>(s.batch + d)]);
      in.index.push_back(checked_index(c, c.load(1, std::move(tuple)), size));
    }
    in.index.insert(in.index.end(), at.index.begin() + outer, at.index.end());
    if (at.axis >= 0) in.axis = at.axis - outer + s.batch + s.depth;
    c.store(at, c.load(0, in));
  });
}

}  // namespace

OpDef define_gather_nd() {
  OpDef d;
  d.name = "GatherND";
  d.doc =
      "y[b..., k..., j...] = data[b..., indices[b..., k..., 0], ..., indices[b..., k..., last], j...]. Negative "
      "indices "
      "count from the end; one out of range fails at run time.";
  d.inputs = {{"data", "any shape"}, {"indices", "i64 or i32; the last axis holds one tuple"}};
  d.outputs = {{"y", "shape of indices without its last axis, then data's axes that are left"}};
  d.attributes = {optional("batch_dims", AttrKind::integer, "leading axes that both share", int64_t{0})};
  d.traits = kPure | kEpilogueOk;
  d.dtypes = all_dtypes();
  d.infer = infer_gather_nd;
  d.lower = lower_gather_nd;
  d.flops = [](const ir::Node&) { return Dim(0); };
  d.samples = [] {
    return std::vector<Sample>{
        {"by_hand", {f32({2, 2}), i64({2, 2})}, {}, {{1, 2, 3, 4}, {0, 1, -1, 0}}, {2, 3}},
        {"rows", {f32({3, 4, 19}), i64({2, 3, 1})}, {}, {{}, {0, 1, 2, -1, -2, -3}}},
        {"batched",
         {f32({2, 3, 4}), i64({2, 5, 1})},
         {{"batch_dims", int64_t{1}}},
         {{}, {0, 1, 2, 0, 1, 2, 1, 0, -1, -2}}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
