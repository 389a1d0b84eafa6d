#include "core/frontends/onnx/fold.h"

#include <algorithm>

#include "core/ops/evaluate_node.h"
#include "core/ops/op.h"

namespace cuvil::frontends::onnx {
namespace {

/// Shape computations are small; what is larger is data.
constexpr size_t kMostNodes = 4096;
constexpr int64_t kMostElements = 1 << 16;
constexpr int64_t kMostFlops = 1 << 20;

/// Can be computed here if its inputs are known.
bool computable(const ir::Node& node) {
  const ops::OpDef& def = ops::def(node);
  if (!def.is(ops::kPure) || def.is(ops::kConstant | ops::kGroup | ops::kHost | ops::kDataDependent)) return false;
  if (!node.regions.empty() || !ops::can_evaluate(node)) return false;
  for (const auto& out : node.outputs)
    if (!is_static(out->type.shape) || num_elements(out->type.shape).value() > kMostElements) return false;
  for (const auto& [key, a] : node.attributes)  // a list of sizes may speak of symbols
    if (const auto* s = std::get_if<Shape>(&a); s && !is_static(*s)) return false;
  const std::optional<int64_t> flops = ops::flops_of(node).as_const();
  return flops && *flops <= kMostFlops;
}

/// The nodes behind `value` in the order they were made, and the graph inputs; false if one of them cannot be computed.
/// `stop(value)` is true for what is known already.
template <class Stop>
bool gather(const ir::Value* value, Stop stop, std::map<int, const ir::Node*>& nodes,
            std::vector<const ir::Value*>& inputs) {
  std::vector<const ir::Value*> open{value};
  while (!open.empty()) {
    const ir::Value* v = open.back();
    open.pop_back();
    if (!v || ir::constant_of(v) || stop(v)) continue;
    if (!v->producer) {
      if (std::find(inputs.begin(), inputs.end(), v) == inputs.end()) inputs.push_back(v);
      continue;
    }
    if (!nodes.emplace(v->producer->id, v->producer).second) continue;
    if (nodes.size() > kMostNodes || !computable(*v->producer)) return false;
    for (const ir::Value* in : v->producer->inputs()) open.push_back(in);
  }
  return true;
}

}  // namespace

const ir::Tensor* Folder::constant(const ir::Value* value) {
  if (const ir::Tensor* t = ir::constant_of(value)) return t;
  if (auto it = known_.find(value); it != known_.end()) return it->second ? &*it->second : nullptr;
  std::map<int, const ir::Node*> nodes;
  std::vector<const ir::Value*> inputs;
  bool possible = true;
  const auto stop = [&](const ir::Value* v) {
    auto it = known_.find(v);
    if (it == known_.end()) return false;
    possible = possible && it->second.has_value();
    return true;
  };
  if (!gather(value, stop, nodes, inputs) || !inputs.empty() || !possible) {
    known_[value] = std::nullopt;
    return nullptr;
  }
  // Any target will do: the interpreter computes the same for all.
  static const TargetInfo target = TargetInfo::named("x86-64-v3");
  for (const auto& [id, node] : nodes) {
    std::vector<const ir::Tensor*> operands;
    for (const ir::Value* v : node->inputs()) operands.push_back(v ? constant(v) : nullptr);
    std::vector<ir::Tensor> results = ops::evaluate_node(*node, operands, {}, target);
    for (size_t i = 0; i < results.size(); ++i) known_[node->output(i)] = std::move(results[i]);
  }
  return &*known_.at(value);
}

std::vector<const ir::Value*> Folder::inputs_of(const ir::Value* value) const {
  std::map<int, const ir::Node*> nodes;
  std::vector<const ir::Value*> inputs;
  const auto stop = [&](const ir::Value* v) {
    auto it = known_.find(v);
    return it != known_.end() && it->second.has_value();
  };
  const auto is_graph_input = [&](const ir::Value* v) { return graph_inputs_.count(v) != 0; };
  if (!gather(value, stop, nodes, inputs) || !std::all_of(inputs.begin(), inputs.end(), is_graph_input)) return {};
  return inputs;
}

}  // namespace cuvil::frontends::onnx
