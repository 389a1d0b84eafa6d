#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_bit_shift() {
  OpDef d = binary(
      "BitShift",
      "y = a shifted by b bits; b at least the width, or negative, gives 0, and a negative number's sign to the right.",
      int_dtypes());
  d.attributes = {optional("direction", AttrKind::string, "LEFT or RIGHT", std::string("LEFT"))};
  d.infer = [](const InferContext& c) {
    same_dtype(c, 1);
    const std::string& direction = c.node.attr<std::string>("direction");
    if (direction != "LEFT" && direction != "RIGHT") c.fail("direction must be LEFT or RIGHT");
    return std::vector<ir::Type>{{c.in(0).dtype, broadcast(c, c.in(0).shape, c.in(1).shape), {}}};
  };
  d.expr = [](const ir::Node& node, std::span<const kernel::Expr> x) {
    return kernel::make(node.attr<std::string>("direction") == "LEFT" ? kernel::Op::shl : kernel::Op::shr,
                        {x[0], x[1]});
  };
  d.samples = [] {
    std::vector<Sample> all = binary_samples(DType::u32, {16, 4, 1}, {1, 2, 40}, {32, 16, 0});
    std::vector<Sample> right = binary_samples(DType::i8, {-128, 127, -3}, {1, 2, 9}, {-64, 31, -1});
    for (Sample& s : right) s.attributes["direction"] = std::string("RIGHT");
    append(all, std::move(right), "right_");
    return all;
  };
  return d;
}

}  // namespace cuvil::ops
