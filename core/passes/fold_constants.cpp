#include <algorithm>

#include "core/ops/builder.h"
#include "core/passes/evaluate.h"
#include "core/passes/pass.h"
#include "core/passes/rewrite.h"

namespace cuvil::passes {
namespace {

/// A fold may not blow the model up: results beyond this size must not be larger than what they are computed from.
constexpr int64_t kFreeBytes = 256 << 10;
/// The interpreter makes some ten million operations a second.
constexpr int64_t kMaxFlops = 32 << 20;

bool worthwhile(const ir::Node& node) {
  int64_t in = 0, out = 0;
  for (const ir::Value* v : node.inputs())
    if (v) in += ir::constant_of(v)->bytes();
  for (const auto& v : node.outputs) {
    const std::optional<int64_t> bytes = v->type.bytes().as_const();
    if (!bytes) return false;
    out += *bytes;
  }
  const std::optional<int64_t> flops = ops::flops_of(node).as_const();
  if (out > kFreeBytes && out > in) return false;
  return ops::def(node).is(ops::kView) || (flops && std::max(*flops, out) <= kMaxFlops);
}

bool foldable(const ir::Node& node) {
  const ops::OpDef& def = ops::def(node);
  if (!def.is(ops::kPure) || def.is(ops::kConstant | ops::kGroup | ops::kHost | ops::kDataDependent)) return false;
  if (!node.regions.empty() || !can_evaluate(node)) return false;
  for (const auto& v : node.outputs)
    if (!is_static(v->type.shape)) return false;
  // A node without inputs (a list of sizes) may still speak of symbols.
  for (const auto& [key, a] : node.attributes)
    if (const auto* s = std::get_if<Shape>(&a); s && !is_static(*s)) return false;
  return std::all_of(node.inputs().begin(), node.inputs().end(),
                     [](const ir::Value* v) { return !v || ir::constant_of(v); });
}

std::vector<ir::Tensor> compute(const ir::Node& node, const TargetInfo& target) {
  if (ops::def(node).is(ops::kView)) {
    ir::Tensor same = *ir::constant_of(node.input(0));
    if (same.type.layout.is_plain()) {
      same.type = node.output()->type;
      return {same};
    }
  }
  std::vector<const ir::Tensor*> inputs;
  for (const ir::Value* v : node.inputs()) inputs.push_back(ir::constant_of(v));
  return evaluate_node(node, inputs, {}, target);
}

}  // namespace

/// Runs every node whose inputs are all constants in the interpreter; views share their input's bytes. Results that
/// are large and larger than the inputs stay nodes.
ir::Graph fold_constants(ir::Graph graph, const PassContext& context) {
  bool changed = false;
  for (ir::Node* node : body_nodes(graph)) {
    if (!foldable(*node) || !worthwhile(*node)) continue;
    const std::vector<ir::Tensor> values = compute(*node, context.target);
    ops::Builder builder(graph, node);
    builder.at(node->location);
    for (size_t i = 0; i < values.size(); ++i) replace_by_new(graph, node->output(i), builder.constant(values[i]));
    changed = true;
  }
  if (changed) erase_dead(graph);
  return graph;
}

}  // namespace cuvil::passes
