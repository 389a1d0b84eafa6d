#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_cast() {
  OpDef d = unary("Cast",
                  "y = x in another element type. Float to integer truncates and saturates, NaN gives 0; integer to "
                  "narrower integer wraps; to bool is x != 0; to a narrower float rounds to nearest even.",
                  all_dtypes());
  d.outputs = {{"y", "shape of x"}};
  d.attributes = {required("to", AttrKind::dtype, "element type of y")};
  d.infer = [](const InferContext& c) { return std::vector<ir::Type>{{c.node.attr<DType>("to"), c.in(0).shape, {}}}; };
  d.expr = [](const ir::Node& node, std::span<const kernel::Expr> x) {
    return kernel::cast({node.attr<DType>("to"), 1}, x[0]);
  };
  d.fold = [](ir::Graph&, ir::Node& node) -> ir::Value* {
    return node.input(0)->type == node.output()->type ? node.input(0) : nullptr;
  };
  d.samples = [] {
    const auto to = [](DType t) { return ir::Attributes{{"to", t}}; };
    return std::vector<Sample>{
        {"by_hand", {f32({5})}, to(DType::i32), {{-1.7, 2.9, 0, 3e9, -3e9}}, {-1, 2, 0, 2147483647, -2147483648.0}},
        {"to_bool", {f32({4})}, to(DType::boolean), {{-1.5, 0, 0.25, -0.0}}, {1, 0, 1, 0}},
        {"from_bool", {of(DType::boolean, {3})}, to(DType::f32), {{1, 0, 1}}, {1, 0, 1}},
        {"wraps", {i64({3})}, to(DType::u8), {{-1, 256, 255}}, {255, 0, 255}},
        {"from_i64", {i64({3, 17})}, to(DType::f32)},
        {"from_u8", {of(DType::u8, {3, 17})}, to(DType::f32)},
        {"to_f16", {f32({3, 17})}, to(DType::f16)},
        {"from_f16", {of(DType::f16, {3, 17})}, to(DType::f32)},
        {"to_f64", {f32({3, 17})}, to(DType::f64)},
        {"image", {f32({2, 20, 5, 7})}, to(DType::i64)},
    };
  };
  return d;
}

}  // namespace cuvil::ops
