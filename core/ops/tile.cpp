#include "core/ops/define.h"
#include "core/ops/loops.h"

namespace cuvil::ops {

OpDef define_tile() {
  OpDef d;
  d.name = "Tile";
  d.doc = "y = x repeated along every axis: y[i, ...] = x[i mod size, ...].";
  d.inputs = {{"x", "any shape"}};
  d.outputs = {{"y", "sizes times repeats"}};
  d.attributes = {required("repeats", AttrKind::integers, "per axis, not negative")};
  d.traits = kEpilogueOk | kPure;
  d.dtypes = all_dtypes();
  d.infer = [](const InferContext& c) {
    const Ints& repeats = c.node.attr<Ints>("repeats");
    if (repeats.size() != c.in(0).shape.size()) c.fail("repeats need one number per axis");
    ir::Type out{c.in(0).dtype, c.in(0).shape, {}};
    for (size_t a = 0; a < repeats.size(); ++a) {
      if (repeats[a] < 0) c.fail("repeats must not be negative");
      out.shape[a] = out.shape[a] * Dim(repeats[a]);
    }
    return std::vector<ir::Type>{out};
  };
  d.lower = [](LowerContext& c) {
    const Ints& repeats = c.node().attr<Ints>("repeats");
    const std::vector<kernel::Expr> sizes = c.extents(c.in_type(0).shape);
    for_each(c, c.out_memory().type(), {}, [&](const Coords& at) {
      Coords in = at;
      for (size_t a = 0; a < repeats.size(); ++a)
        if (repeats[a] != 1) in = in.with(static_cast<int>(a), at.at(static_cast<int>(a)) % sizes[a]);
      c.store(at, c.load(0, in));
    });
  };
  d.flops = [](const ir::Node&) { return Dim(0); };
  d.samples = [] {
    const auto by = [](Ints repeats) { return ir::Attributes{{"repeats", std::move(repeats)}}; };
    return std::vector<Sample>{
        {"by_hand", {f32({1, 2})}, by({2, 2}), {{1, 2}}, {1, 2, 1, 2, 1, 2, 1, 2}},
        {"rows", {f32({3, 19})}, by({4, 1})},
        {"columns", {i64({3, 5})}, by({1, 4})},
        {"none", {f32({3, 5})}, by({1, 0})},
    };
  };
  return d;
}

}  // namespace cuvil::ops
