#include "core/ops/reorder.h"

#include <cstring>

#include "core/base/error.h"
#include "core/ops/define.h"
#include "core/ops/loops.h"

namespace cuvil::ops {
namespace {

/// Where index i of each axis lies: offsets[axis][i], in elements. A position is the sum over axes, whatever the
/// layout.
std::vector<std::vector<int64_t>> offsets_of(const ir::Type& type) {
  const Shape physical = type.layout.physical_shape(type.shape);
  std::vector<int64_t> strides(physical.size(), 1);
  for (size_t p = physical.size(); p-- > 1;) strides[p - 1] = strides[p] * physical[p].value();
  const size_t rank = type.shape.size();
  std::vector<std::vector<int64_t>> offsets(rank);
  for (size_t a = 0; a < rank; ++a) {
    size_t position = a;
    for (size_t p = 0; p < type.layout.order.size(); ++p)
      if (type.layout.order[p] == static_cast<int>(a)) position = p;
    offsets[a].resize(static_cast<size_t>(type.shape[a].value()));
    for (size_t i = 0; i < offsets[a].size(); ++i) {
      int64_t rest = static_cast<int64_t>(i), offset = 0;
      for (size_t b = type.layout.blocks.size(); b-- > 0;) {
        const ir::Layout::Block& block = type.layout.blocks[b];
        if (block.axis != static_cast<int>(a)) continue;
        offset += rest % block.size * strides[rank + b];
        rest /= block.size;
      }
      offsets[a][i] = offset + rest * strides[position];
    }
  }
  return offsets;
}

template <class T>
void copy(const uint8_t* from, uint8_t* to, const std::vector<std::vector<int64_t>>& source,
          const std::vector<std::vector<int64_t>>& target, const std::vector<size_t>& order) {
  const size_t rank = order.size();
  std::vector<size_t> index(rank, 0);
  const size_t inner = order.back();
  for (;;) {
    int64_t s = 0, t = 0;
    for (size_t p = 0; p + 1 < rank; ++p) {
      s += source[order[p]][index[p]];
      t += target[order[p]][index[p]];
    }
    for (size_t i = 0; i < source[inner].size(); ++i)
      std::memcpy(to + static_cast<size_t>(t + target[inner][i]) * sizeof(T),
                  from + static_cast<size_t>(s + source[inner][i]) * sizeof(T), sizeof(T));
    size_t p = rank - 1;
    while (p > 0 && ++index[p - 1] == source[order[p - 1]].size()) index[--p] = 0;
    if (p == 0) return;
  }
}

}  // namespace

ir::Tensor reorder(const ir::Tensor& tensor, const ir::Layout& layout) {
  CUVIL_CHECK(is_static(tensor.type.shape), "constants have known sizes");
  if (tensor.type.layout == layout) return tensor;
  ir::Type type = tensor.type;
  type.layout = layout;
  auto [result, bytes] = ir::Tensor::allocate(type);
  std::memset(bytes, 0, static_cast<size_t>(result.bytes()));
  if (num_elements(type.shape).value() == 0) return result;
  if (type.shape.empty()) {
    std::memcpy(bytes, tensor.raw(), static_cast<size_t>(size_of(type.dtype)));
    return result;
  }
  // In the order of the target's memory, its innermost axis last.
  std::vector<size_t> order;
  const size_t last = static_cast<size_t>(!layout.blocks.empty()  ? layout.blocks.back().axis
                                          : !layout.order.empty() ? layout.order.back()
                                                                  : type.rank() - 1);
  for (size_t p = 0; p < type.shape.size(); ++p) {
    const size_t a = layout.order.empty() ? p : static_cast<size_t>(layout.order[p]);
    if (a != last) order.push_back(a);
  }
  order.push_back(last);
  const auto source = offsets_of(tensor.type), target = offsets_of(type);
  switch (size_of(type.dtype)) {
    case 1:
      copy<uint8_t>(tensor.raw(), bytes, source, target, order);
      break;
    case 2:
      copy<uint16_t>(tensor.raw(), bytes, source, target, order);
      break;
    case 4:
      copy<uint32_t>(tensor.raw(), bytes, source, target, order);
      break;
    default:
      copy<uint64_t>(tensor.raw(), bytes, source, target, order);
      break;
  }
  return result;
}

OpDef define_reorder() {
  OpDef d;
  d.name = "Reorder";
  d.doc = "y = x, laid out in memory as `layout` says. Passes insert it where layouts meet.";
  d.inputs = {{"x", "any shape and layout"}};
  d.outputs = {{"y", "shape of x"}};
  d.attributes = {required("layout", AttrKind::layout, "of y; plain layouts are written as an empty tag")};
  d.traits = kReorder | kPure | kEpilogueOk;
  d.dtypes = all_dtypes();
  d.infer = [](const InferContext& c) {
    return std::vector<ir::Type>{{c.in(0).dtype, c.in(0).shape, c.node.attr<ir::Layout>("layout")}};
  };
  d.lower = [](LowerContext& c) {
    for_each(c, c.out_memory().type(), {}, [&](const Coords& at) { c.store(at, c.load(0, at)); });
  };
  d.flops = [](const ir::Node&) { return Dim(0); };
  d.fold = [](ir::Graph&, ir::Node& node) -> ir::Value* {
    return node.input(0)->type == node.output()->type ? node.input(0) : nullptr;
  };
  d.samples = [] {
    const auto to = [](ir::Layout l) { return ir::Attributes{{"layout", std::move(l)}}; };
    const ir::Layout swapped{{1, 0}, {}};
    return std::vector<Sample>{
        {"by_hand", {f32({2, 3})}, to(swapped), {{1, 2, 3, 4, 5, 6}}, {1, 2, 3, 4, 5, 6}},
        {"to_blocks", {f32({2, 20, 5, 7})}, to(ir::Layout::nchwc(4, 16))},
        {"to_small_blocks", {f32({2, 20, 5, 7})}, to(ir::Layout::nchwc(4, 4))},
        {"from_blocks", {ir::Type{DType::f32, {2, 20, 5, 7}, ir::Layout::nchwc(4, 8)}}, to({})},
        {"panels", {f32({20, 37})}, to({{1, 0}, {{1, 16}}})},
        {"integers", {i64({1, 32, 3, 3})}, to(ir::Layout::nchwc(4, 8))},
    };
  };
  return d;
}

}  // namespace cuvil::ops
