#include <cmath>

#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_div() {
  OpDef d = binary("Div", "y = a / b. Integers truncate toward zero, as ONNX has it; an integer divided by 0 is 0.",
                   number_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return x[0] / x[1]; };
  d.samples = [] {
    std::vector<Sample> all = binary_samples(DType::f32, {1, -2, 0.5, 0}, {2, 0, -0.25, 0}, {0.5, -INFINITY, -2, NAN});
    append(all, binary_samples(DType::i32, {7, -7, 7}, {2, 2, -2}, {3, -3, -3}), "i32_");
    return all;
  };
  return d;
}

}  // namespace cuvil::ops
