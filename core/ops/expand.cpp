#include "core/ops/define.h"
#include "core/ops/loops.h"

namespace cuvil::ops {

OpDef define_expand() {
  OpDef d;
  d.name = "Expand";
  d.doc = "y = x broadcast to `shape`.";
  d.inputs = {{"x", "broadcasts to shape"}};
  d.outputs = {{"y", "of the given shape"}};
  d.attributes = {required("shape", AttrKind::shape, "sizes of y")};
  d.traits = kEpilogueOk | kPure;
  d.dtypes = all_dtypes();
  d.infer = [](const InferContext& c) {
    const Shape& shape = c.node.attr<Shape>("shape");
    if (c.in(0).shape.size() > shape.size()) c.fail("x has more dimensions than shape");
    const Shape both = broadcast(c, c.in(0).shape, shape);
    for (size_t i = 0; i < both.size(); ++i) c.require_equal(both[i], shape[i], "x does not broadcast to shape");
    return std::vector<ir::Type>{{c.in(0).dtype, shape, {}}};
  };
  d.lower = [](LowerContext& c) {
    for_each(c, c.out_memory().type(), {}, [&](const Coords& at) {
      c.store(at, c.load(0, broadcast_coords(at, c.out_type().shape, c.in_type(0).shape)));
    });
  };
  d.flops = [](const ir::Node&) { return Dim(0); };
  d.fold = [](ir::Graph&, ir::Node& node) -> ir::Value* {
    return node.input(0)->type == node.output()->type ? node.input(0) : nullptr;
  };
  d.samples = [] {
    const auto to = [](Shape shape) { return ir::Attributes{{"shape", std::move(shape)}}; };
    return std::vector<Sample>{
        {"by_hand", {f32({2, 1})}, to({2, 3}), {{1, 2}}, {1, 1, 1, 2, 2, 2}},
        {"rows", {f32({19})}, to({3, 4, 19})},
        {"scalar", {i64({})}, to({5, 17})},
        {"same", {f32({3, 4})}, to({3, 4})},
        {"empty", {f32({1, 3})}, to({0, 3})},
    };
  };
  return d;
}

}  // namespace cuvil::ops
