#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_where() {
  OpDef d = unary("Where", "y = condition ? a : b, all three broadcast.", {DType::boolean});
  d.inputs = {{"condition", "bool"}, {"a", "any type"}, {"b", "of the type of a"}};
  d.outputs = {{"y", "broadcast shape"}};
  d.infer = [](const InferContext& c) {
    if (c.in(1).dtype != c.in(2).dtype) c.fail("a and b differ in element type");
    return std::vector<ir::Type>{
        {c.in(1).dtype, broadcast(c, broadcast(c, c.in(0).shape, c.in(1).shape), c.in(2).shape), {}}};
  };
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return kernel::select(x[0], x[1], x[2]); };
  d.samples = [] {
    const auto flag = [](Shape s) { return of(DType::boolean, std::move(s)); };
    return std::vector<Sample>{
        {"by_hand", {flag({3}), f32({3}), f32({})}, {}, {{1, 0, 1}, {1, 2, 3}, {-1}}, {1, -1, 3}},
        {"broadcast", {flag({5, 1}), f32({19}), f32({5, 19})}},
        {"image", {flag({2, 20, 5, 7}), f32({2, 20, 5, 7}), f32({20, 1, 1})}},
        {"integers", {flag({2, 1}), i64({2, 3}), i64({3})}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
