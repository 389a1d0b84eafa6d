#include <cmath>

#include "core/ops/define.h"
#include "core/ops/math.h"

namespace cuvil::ops {

OpDef define_mod() {
  OpDef d = binary("Mod",
                   "y = a - b * floor(a / b), with the sign of b; with fmod = 1 a - b * trunc(a / b), with the sign of "
                   "a. An integer divided by 0 is 0.",
                   number_dtypes());
  d.attributes = {optional("fmod", AttrKind::integer, "1: the sign of a", int64_t{0})};
  d.expr = [](const ir::Node& node, std::span<const kernel::Expr> x) {
    return math::remainder(x[0], x[1], node.attr<int64_t>("fmod") != 0);
  };
  d.samples = [] {
    std::vector<Sample> all =
        binary_samples(DType::f32, {7, -7, 7.5, -7.5, 4}, {3, 3, -2, -2, INFINITY}, {1, 2, -0.5, -1.5, 4});
    append(all, binary_samples(DType::i32, {7, -7, 7, -7}, {3, 3, -3, -3}, {1, 2, -2, -1}), "i32_");
    return all;
  };
  return d;
}

}  // namespace cuvil::ops
