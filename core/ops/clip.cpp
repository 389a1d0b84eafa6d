#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_clip() {
  OpDef d =
      unary("Clip", "y = min(max(x, low), high); an absent bound bounds nothing; NaN stays NaN; high wins over low.",
            number_dtypes());
  d.inputs = {{"x", "any shape"}, {"low", "one element", true}, {"high", "one element", true}};
  d.infer = [](const InferContext& c) {
    for (size_t i = 1; i < 3; ++i) {
      if (!c.has_in(i)) continue;
      same_dtype(c, i);
      if (num_elements(c.in(i).shape).as_const() != 1) c.fail("bounds are single numbers");
      if (c.in(i).rank() > c.in(0).rank()) c.fail("bounds have no more dimensions than x");
    }
    return std::vector<ir::Type>{{c.in(0).dtype, c.in(0).shape, {}}};
  };
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) {
    kernel::Expr y = x[0];
    if (x.size() > 1 && x[1]) y = kernel::select(y < x[1], x[1], y);
    if (x.size() > 2 && x[2]) y = kernel::select(y > x[2], x[2], y);
    return y;
  };
  d.samples = [] {
    return std::vector<Sample>{
        {"by_hand", {f32({4}), f32({}), f32({})}, {}, {{-3, 0.5, 7, 1}, {-1}, {2}}, {-1, 0.5, 2, 1}},
        {"low", {f32({2, 19}), f32({})}},
        {"high", {f32({2, 20, 5, 7}), std::nullopt, f32({})}},
        {"none", {f32({3})}},
        {"integers", {i64({5}), i64({}), i64({})}, {}, {{-3, 0, 7, 1, 2}, {0}, {2}}, {0, 0, 2, 1, 2}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
