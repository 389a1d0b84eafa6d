#include "core/ops/define.h"
#include "core/ops/loops.h"

namespace cuvil::ops {

OpDef define_bit_cast() {
  OpDef d;
  d.name = "BitCast";
  d.doc = "The bits of x as another element type of the same size (ONNX BitCast).";
  d.inputs = {{"x", "any shape"}};
  d.outputs = {{"y", "shape of x"}};
  d.attributes = {required("to", AttrKind::dtype, "element type of y, of as many bytes as x's")};
  d.traits = kView | kPure;
  d.dtypes = all_dtypes();
  d.infer = [](const InferContext& c) {
    const DType to = c.node.attr<DType>("to");
    if (size_of(to) != size_of(c.in(0).dtype) || to == DType::boolean || c.in(0).dtype == DType::boolean)
      c.fail("elements of " + std::string(name_of(c.in(0).dtype)) + " cannot be taken for " + std::string(name_of(to)));
    return std::vector<ir::Type>{{to, c.in(0).shape, {}}};
  };
  d.lower = [](LowerContext& c) {
    for_each(c, c.out_memory().type(), {}, [&](const Coords& at) {
      c.store(at, kernel::bitcast({c.out_type().dtype, static_cast<uint16_t>(at.lanes)}, c.load(0, at)));
    });
  };
  d.flops = [](const ir::Node&) { return Dim(0); };
  d.fold = [](ir::Graph&, ir::Node& node) -> ir::Value* {
    return node.input(0)->type == node.output()->type ? node.input(0) : nullptr;
  };
  d.samples = [] {
    return std::vector<Sample>{
        {"by_hand", {f32({3})}, {{"to", DType::i32}}, {{1, -2, 0}}, {1065353216, -1073741824, 0}},
        {"back", {of(DType::i64, {3, 17})}, {{"to", DType::f64}}},
        {"half",
         {of(DType::u16, {5})},
         {{"to", DType::bf16}},
         {{0, 16256, 49152, 1, 16512}},
         {0, 1, -2, 9.18355e-41, 4}},
        {"bytes", {of(DType::u8, {4})}, {{"to", DType::i8}}, {{0, 127, 128, 255}}, {0, 127, -128, -1}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
