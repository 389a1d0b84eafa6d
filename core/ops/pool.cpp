#include "core/ops/pool.h"

namespace cuvil::ops {

Window pool_window(const ir::Node& node) { return Window::of(node, node.attr<Ints>("kernel")); }

OpDef pooling(std::string_view name, std::string_view doc, std::vector<DType> dtypes) {
  OpDef d;
  d.name = name;
  d.doc = doc;
  d.inputs = {{"x", "[N, C, H, W]"}};
  d.outputs = {{"y", "[N, C, H', W']"}};
  d.attributes = window_attributes();
  d.attributes.insert(d.attributes.begin(), required("kernel", AttrKind::integers, "[kh, kw]"));
  d.attributes.push_back(
      optional("ceil_mode", AttrKind::integer, "1: sizes round up; a last window may overhang", int64_t{0}));
  d.traits = kBlockable | kEpilogueOk | kPure;
  d.dtypes = std::move(dtypes);
  d.infer = [](const InferContext& c) {
    need_rank(c, 0, 4);
    const Window w = window_of(c, c.node.attr<Ints>("kernel"));
    for (size_t i = 0; i < 2; ++i)
      if (w.pads[i] >= w.extent(static_cast<int>(i)) || w.pads[i + 2] >= w.extent(static_cast<int>(i)))
        c.fail("a window may not lie in the padding alone: pads must be smaller than the kernel");
    const Shape& x = c.in(0).shape;
    const bool ceil = ceil_mode(c.node);
    return std::vector<ir::Type>{
        {c.in(0).dtype, {x[0], x[1], w.out_size(c, x[2], 0, ceil), w.out_size(c, x[3], 1, ceil)}, {}}};
  };
  d.flops = [](const ir::Node& n) {
    const Ints& k = n.attr<Ints>("kernel");
    return num_elements(n.output()->type.shape) * Dim(k[0] * k[1]);
  };
  return d;
}

std::vector<Sample> pool_samples(std::vector<double> expected) {
  const auto window = [](Ints kernel, Ints strides, Ints pads, int64_t ceil = 0, Ints dilations = {1, 1}) {
    return ir::Attributes{{"kernel", std::move(kernel)},
                          {"strides", std::move(strides)},
                          {"pads", std::move(pads)},
                          {"dilations", std::move(dilations)},
                          {"ceil_mode", ceil}};
  };
  return {
      {"by_hand",
       {f32({1, 1, 3, 4})},
       window({2, 2}, {1, 2}, {0, 0, 1, 0}),
       {{1, -2, 3, 4, 0.5, 6, -7, 8, 9, 10, -11, -12}},
       std::move(expected)},
      {"resnet", {f32({1, 20, 11, 13})}, window({3, 3}, {2, 2}, {1, 1, 1, 1})},
      {"ceil", {f32({2, 3, 10, 9})}, window({3, 2}, {2, 2}, {0, 0, 0, 0}, 1)},
      {"dilated", {f32({1, 16, 9, 9})}, window({2, 3}, {1, 1}, {1, 2, 1, 2}, 0, {2, 2})},
      {"wide", {f32({1, 4, 5, 40})}, window({3, 3}, {1, 1}, {1, 1, 1, 1})},
      {"f16", {of(DType::f16, {1, 3, 6, 6})}, window({2, 2}, {2, 2}, {0, 0, 0, 0})},
  };
}

}  // namespace cuvil::ops
