#include <algorithm>
#include <map>

#include "core/ops/op.h"
#include "core/passes/pass.h"
#include "core/passes/rewrite.h"

namespace cuvil::passes {

ir::Graph canonicalise(ir::Graph graph, const PassContext& context);
ir::Graph fold_constants(ir::Graph graph, const PassContext& context);

namespace {

/// Inputs that are captured: parameter first_param + i of every region stands for input first_input + i.
struct Captures {
  size_t first_input, first_param;
  static Captures of(const ir::Node& node) {
    if (!node.has("carried")) return {1, 0};
    const auto carried = static_cast<size_t>(node.attr<int64_t>("carried"));
    return {2 + carried, 1 + carried};
  }
};

/// Drops captures that `keep` is false for, whose parameters have no uses left.
void drop_captures(ir::Node& node, const std::vector<bool>& keep) {
  const Captures at = Captures::of(node);
  std::vector<ir::Value*> inputs;
  for (size_t i = 0; i < node.inputs().size(); ++i)
    if (i < at.first_input || keep[i - at.first_input]) inputs.push_back(node.input(i));
  node.clear_inputs();
  for (ir::Value* v : inputs) node.add_input(v);
  for (ir::Region& region : node.regions)
    for (size_t i = keep.size(); i-- > 0;)
      if (!keep[i]) region.params.erase(region.params.begin() + static_cast<int64_t>(at.first_param + i));
}

/// Constants move into the regions that read them, where they may be packed and folded; what no region reads is no
/// input any more; what is captured twice is captured once.
bool tidy_captures(ir::Graph& graph, ir::Node& node) {
  const Captures at = Captures::of(node);
  const size_t count = node.inputs().size() - std::min(node.inputs().size(), at.first_input);
  std::vector<bool> keep(count, true);
  std::map<const ir::Value*, size_t> first;
  bool changed = false;
  for (size_t i = 0; i < count; ++i) {
    ir::Value* outer = node.input(at.first_input + i);
    const auto [twin, fresh] = first.try_emplace(outer, i);
    const ir::Tensor* tensor = ir::constant_of(outer);
    bool used = false;
    for (ir::Region& region : node.regions) {
      ir::Value* param = region.params[at.first_param + i].get();
      const bool unused = graph.unused(param);
      if (!unused && tensor) {
        std::optional<ir::Node*> front;
        if (!region.nodes.empty()) front = region.nodes.front().get();
        ir::Node* copy = graph.create("Constant", {}, outer->producer->attributes, {outer->type},
                                      outer->producer->location, &region, front);
        graph.replace_uses(param, copy->output());
      } else if (!unused && !fresh) {
        graph.replace_uses(param, region.params[at.first_param + twin->second].get());
        keep[twin->second] = true;
      } else {
        used = used || !unused;
      }
    }
    keep[i] = used;
    changed = changed || !used;
  }
  if (changed) drop_captures(node, keep);
  return changed;
}

/// An If whose condition is known becomes its branch.
bool inline_branch(ir::Graph& graph, ir::Node& node) {
  const ir::Tensor* condition = node.regions.size() == 2 ? ir::constant_of(node.input(0)) : nullptr;
  if (!condition) return false;
  ir::Region& taken = node.regions[condition->as_int(0) != 0 ? 0 : 1];
  for (size_t i = 0; i < taken.params.size(); ++i) graph.replace_uses(taken.params[i].get(), node.input(i + 1));
  for (size_t i = 0; i < taken.results.size(); ++i) graph.replace_uses(node.output(i), taken.results[i]);
  taken.results.clear();
  const auto at =
      std::find_if(graph.body.nodes.begin(), graph.body.nodes.end(), [&](const auto& n) { return n.get() == &node; });
  graph.body.nodes.splice(at, taken.nodes);
  graph.erase(&node);
  return true;
}

}  // namespace

/// If with a constant condition becomes its branch; regions get copies of the constants that they read.
ir::Graph simplify_control_flow(ir::Graph graph, const PassContext& context) {
  bool changed = false;
  for (bool again = true; again;) {  // a branch may hold further ones
    again = false;
    for (ir::Node* node : body_nodes(graph))
      if (ops::def(*node).is(ops::kControl)) again = inline_branch(graph, *node) || again;
    changed = changed || again;
  }
  for (ir::Node* node : body_nodes(graph)) {
    if (!ops::def(*node).is(ops::kControl) || !tidy_captures(graph, *node)) continue;
    changed = true;
    for (ir::Region& region : node->regions)
      graph.edit_region(region,
                        [&](ir::Graph g) { return fold_constants(canonicalise(std::move(g), context), context); });
  }
  if (changed) erase_dead(graph);
  return graph;
}

}  // namespace cuvil::passes
