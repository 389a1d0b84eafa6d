#include "core/ops/reorder.h"

#include <algorithm>
#include <cstring>
#include <thread>

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

/// Elements are copied in the order of the target's memory (`order`: axes, innermost last), those whose index of the
/// first axis is in [begin, end).
template <class T>
void copy(const uint8_t* from, uint8_t* to, const std::vector<std::vector<int64_t>>& source,
          const std::vector<std::vector<int64_t>>& target, const std::vector<size_t>& order, size_t begin, size_t end) {
  const size_t rank = order.size();
  std::vector<size_t> index(rank, 0);
  index[0] = begin;
  const size_t inner = order.back();
  const size_t first = rank == 1 ? begin : 0, last = rank == 1 ? end : source[inner].size();
  while (rank == 1 || index[0] < end) {
    int64_t s = 0, t = 0;
    for (size_t p = 0; p + 1 < rank; ++p) {
      s += source[order[p]][index[p]];
      t += target[order[p]][index[p]];
    }
    for (size_t i = first; i < last; ++i)
      std::memcpy(to + static_cast<size_t>(t + target[inner][i]) * sizeof(T),
                  from + static_cast<size_t>(s + source[inner][i]) * sizeof(T), sizeof(T));
    if (rank == 1) return;
    size_t p = rank - 2;
    while (++index[p] == source[order[p]].size() && p > 0) index[p--] = 0;
  }
}

/// Weights are megabytes, and their reordering is most of a build from the cache: a second core halves it.
template <class F>
void split(size_t extent, int64_t elements, F&& run) {
  const size_t parts = elements < (1 << 16) ? 1 : std::min<size_t>({extent, std::thread::hardware_concurrency(), 8});
  std::vector<std::thread> threads;
  for (size_t i = 1; i < parts; ++i) threads.emplace_back(run, extent * i / parts, extent * (i + 1) / parts);
  run(0, extent / std::max<size_t>(parts, 1));
  for (std::thread& t : threads) t.join();
}

}  // namespace

ir::Tensor reorder(const ir::Tensor& tensor, const ir::Layout& layout) {
  CUVIL_CHECK(is_static(tensor.type.shape), "constants have known sizes");
  if (tensor.type.layout == layout) return tensor;
  ir::Type type = tensor.type;
  type.layout = layout;
  auto [result, bytes] = ir::Tensor::allocate(type);
  const int64_t elements = num_elements(type.shape).value();
  if (result.bytes() != elements * size_of(type.dtype)) std::memset(bytes, 0, static_cast<size_t>(result.bytes()));
  if (elements == 0) return result;
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
  const auto copy_part = [&, to = bytes](size_t begin, size_t end) {
    switch (size_of(type.dtype)) {
      case 1:
        return copy<uint8_t>(tensor.raw(), to, source, target, order, begin, end);
      case 2:
        return copy<uint16_t>(tensor.raw(), to, source, target, order, begin, end);
      case 4:
        return copy<uint32_t>(tensor.raw(), to, source, target, order, begin, end);
      default:
        return copy<uint64_t>(tensor.raw(), to, source, target, order, begin, end);
    }
  };
  split(source[order[0]].size(), elements, copy_part);
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
