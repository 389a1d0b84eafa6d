#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_gelu() {
  OpDef d = unary("Gelu",
                  "y = x/2 * (1 + erf(x / sqrt 2)); with approximate = \"tanh\": x/2 * (1 + tanh(sqrt(2/pi) * (x + "
                  "0.044715 x^3))).",
                  float_dtypes());
  d.attributes = {optional("approximate", AttrKind::string, "none or tanh", std::string("none"))};
  d.infer = [](const InferContext& c) {
    const std::string& a = c.node.attr<std::string>("approximate");
    if (a != "none" && a != "tanh") c.fail("approximate must be none or tanh");
    return std::vector<ir::Type>{{c.in(0).dtype, c.in(0).shape, {}}};
  };
  d.expr = [](const ir::Node& node, std::span<const kernel::Expr> x) {
    const kernel::Type t = x[0].type();
    const auto number = [&](double v) { return kernel::constant(t, v); };
    kernel::Expr inner;
    if (node.attr<std::string>("approximate") == "tanh")
      inner =
          kernel::make(kernel::Op::tanh, {(x[0] + x[0] * x[0] * x[0] * number(0.044715)) * number(0.7978845608028654)});
    else
      inner = kernel::make(kernel::Op::erf, {x[0] * number(0.7071067811865476)});
    return x[0] * number(0.5) * (number(1) + inner);
  };
  d.samples = [] {
    return unary_samples({-2, -0.5, 0, 0.25, 1.5}, {-0.0455002639, -0.154268769, 0, 0.149676581, 1.3997892});
  };
  return d;
}

}  // namespace cuvil::ops
