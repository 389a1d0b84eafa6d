#include <algorithm>

#include "core/ops/define.h"
#include "core/ops/loops.h"

namespace cuvil::ops {

OpDef define_trilu() {
  OpDef d = unary("Trilu", "The upper (j - i >= k) or lower (j - i <= k) triangle of the last two axes; 0 elsewhere.",
                  all_dtypes());
  d.attributes = {optional("upper", AttrKind::integer, "1: the upper triangle", int64_t{1}),
                  optional("k", AttrKind::integer, "diagonal", int64_t{0})};
  d.traits = kPure | kEpilogueOk;
  d.infer = [](const InferContext& c) {
    if (c.in(0).rank() < 2) c.fail("x needs two axes");
    return std::vector<ir::Type>{{c.in(0).dtype, c.in(0).shape, {}}};
  };
  d.lower = [](LowerContext& c) {
    using kernel::Expr;
    const int rank = c.out_type().rank();
    const bool upper = c.node().attr<int64_t>("upper") != 0;
    // Any k beyond the axes' extents means the same as one at their ends; the sums below stay in range.
    const int64_t far = int64_t{1} << 40;
    const Expr k(std::min(far, std::max(-far, c.node().attr<int64_t>("k"))));
    for_each(c, c.out_memory().type(), {}, [&](const Coords& at) {
      const Expr diagonal = at.at(rank - 1) - at.at(rank - 2);
      const Expr inside = upper ? diagonal >= k : diagonal <= k;
      c.store(at, c.load(0, at.only(inside)));
    });
  };
  d.flops = [](const ir::Node&) { return Dim(0); };
  d.samples = [] {
    const auto by = [](int64_t upper, int64_t k) { return ir::Attributes{{"upper", upper}, {"k", k}}; };
    return std::vector<Sample>{
        {"by_hand", {f32({2, 3})}, by(1, 0), {{1, 2, 3, 4, 5, 6}}, {1, 2, 3, 0, 5, 6}},
        {"lower", {f32({2, 3})}, by(0, 0), {{1, 2, 3, 4, 5, 6}}, {1, 0, 0, 4, 5, 0}},
        {"batch", {i64({3, 7, 19})}, by(1, -2)},
        {"far", {f32({5, 5})}, by(0, 100)},
    };
  };
  return d;
}

}  // namespace cuvil::ops
