#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_prelu() {
  OpDef d = binary("PRelu", "y = x < 0 ? slope * x : x.", number_dtypes());
  d.inputs = {{"x", "any shape"}, {"slope", "broadcasts to the shape of x"}};
  d.infer = [](const InferContext& c) {
    same_dtype(c, 1);
    if (broadcast(c, c.in(0).shape, c.in(1).shape) != c.in(0).shape)
      c.fail("slope does not broadcast to the shape of x");
    return std::vector<ir::Type>{{c.in(0).dtype, c.in(0).shape, {}}};
  };
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) {
    return kernel::select(x[0] < kernel::constant(x[0].type(), 0), x[0] * x[1], x[0]);
  };
  d.samples = [] {
    std::vector<Sample> all = binary_samples(DType::f32, {1, -2, -0.5}, {2, 2, -0.25}, {1, -4, 0.125});
    std::erase_if(all, [](const Sample& s) { return s.name == "column"; });  // x would have to grow
    return all;
  };
  return d;
}

}  // namespace cuvil::ops
