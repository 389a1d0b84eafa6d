#include "core/ops/indexing.h"

namespace cuvil::ops {
namespace {

using kernel::Expr;

void lower_scatter_nd(LowerContext& c) {
  const ir::Type& data = c.in_type(0);
  const Shape& indices = c.in_type(1).shape;
  const size_t outer = indices.size() - 1;
  const int64_t depth = indices.back().value();
  const std::string& reduction = c.node().attr<std::string>("reduction");
  for_each(c, data, {}, [&](const Coords& at) { c.out_memory().store(c.b(), at, c.load(0, at)); });
  // Updates come in order, so the last one to an element wins: one task.
  const Shape& updates = c.in_type(2).shape;
  c.b().phase(1, [&](Expr) {
    const std::function<void(std::vector<Expr>, std::vector<Expr>)> nest = [&](std::vector<Expr> at,
                                                                               std::vector<Expr> target) {
      if (at.size() == outer) {
        for (int64_t d = 0; d < depth; ++d) {
          std::vector<Expr> tuple = at;
          tuple.push_back(Expr(d));
          target.push_back(checked_index(c, c.load(1, std::move(tuple)), c.dim(data.shape[static_cast<size_t>(d)])));
        }
      }
      if (at.size() == updates.size()) {
        const Coords to{target};
        const Expr update = c.load(2, at);
        c.out_memory().store(c.b(), to,
                             reduction == "none" ? update : combine(reduction, c.out_memory().load(to), update));
        return;
      }
      c.b().loop("i" + std::to_string(at.size()), c.dim(updates[at.size()]), [&](Expr i) {
        std::vector<Expr> inside = at, place = target;
        inside.push_back(i);
        if (at.size() >= outer) place.push_back(i);
        nest(std::move(inside), std::move(place));
      });
    };
    nest({}, {});
  });
}

}  // namespace

OpDef define_scatter_nd() {
  OpDef d;
  d.name = "ScatterND";
  d.doc =
      "y = data, then for all k in order y[indices[k..., 0], ..., indices[k..., last], j...] = updates[k..., j...], or "
      "the "
      "old element combined with it. Negative indices count from the end; one out of range fails at run time.";
  d.inputs = {
      {"data", "any shape"}, {"indices", "i64 or i32; the last axis holds one tuple"}, {"updates", "[k..., j...]"}};
  d.outputs = {{"y", "shape of data"}};
  d.attributes = {reduction_attribute()};
  d.traits = kPure;
  d.dtypes = all_dtypes();
  d.infer = [](const InferContext& c) {
    need_index(c, 1);
    same_dtype(c, 2);
    check_reduction(c);
    const Shape& data = c.in(0).shape;
    const Shape& indices = c.in(1).shape;
    if (indices.empty() || !indices.back().is_const()) c.fail("the last size of indices must be known");
    const int64_t depth = indices.back().value();
    if (depth < 1 || depth > c.in(0).rank()) c.fail("tuples of indices have another length than data has axes");
    Shape want(indices.begin(), indices.end() - 1);
    want.insert(want.end(), data.begin() + depth, data.end());
    need_rank(c, 2, static_cast<int>(want.size()));
    for (size_t a = 0; a < want.size(); ++a) c.require_equal(c.in(2).shape[a], want[a], "sizes of updates");
    return std::vector<ir::Type>{{c.in(0).dtype, data, {}}};
  };
  d.lower = lower_scatter_nd;
  d.flops = [](const ir::Node&) { return Dim(0); };
  d.samples = [] {
    return std::vector<Sample>{
        {"by_hand", {f32({4}), i64({2, 1}), f32({2})}, {}, {{1, 2, 3, 4}, {2, -4}, {10, 20}}, {20, 2, 10, 4}},
        {"add",
         {f32({4}), i64({2, 1}), f32({2})},
         {{"reduction", std::string("add")}},
         {{1, 2, 3, 4}, {2, 2}, {10, 20}},
         {1, 2, 33, 4}},
        {"rows", {f32({5, 19}), i64({2, 1}), f32({2, 19})}, {}, {{}, {4, 1}}},
        {"points", {i64({3, 3}), i64({2, 2, 2}), i64({2, 2})}, {}, {{}, {0, 0, 1, 1, 2, 2, 0, -1}}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
