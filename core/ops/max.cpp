#include <cmath>

#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_max() {
  OpDef d = binary("Max", "y = the larger one; NaN if either is NaN. Several inputs are imported as a chain.",
                   number_dtypes());
  d.traits |= kCommutative;
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return kernel::max(x[0], x[1]); };
  d.samples = [] {
    std::vector<Sample> all = binary_samples(DType::f32, {1, -2, NAN}, {2, -3, 1}, {2, -2, NAN});
    append(all, binary_samples(DType::i32, {5, -3}, {7, -4}, {7, -3}), "i32_");
    return all;
  };
  return d;
}

}  // namespace cuvil::ops
