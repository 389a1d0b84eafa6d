#include "core/ops/op.h"
#include "core/passes/pass.h"
#include "core/passes/rewrite.h"

namespace cuvil::passes {
namespace {

/// c + x -> x + c: later rules look for constants on the right only.
bool constant_to_the_right(ir::Node& node) {
  if (!ir::constant_of(node.input(0)) || ir::constant_of(node.input(1))) return false;
  ir::Value* left = node.input(0);
  node.set_input(0, node.input(1));
  node.set_input(1, left);
  return true;
}

bool apply_rules(ir::Graph& graph, ir::Node& node) {
  const ops::OpDef& def = ops::def(node);
  bool changed = def.is(ops::kCommutative) && node.inputs().size() == 2 && constant_to_the_right(node);
  if (!def.fold || graph.unused(node.output())) return changed;
  ir::Value* same = def.fold(graph, node);
  if (!same || same == node.output()) return changed;
  const bool fresh = same->users.empty() && same->producer && !graph.is_result(same);
  if (fresh)
    replace_by_new(graph, node.output(), same);
  else
    replace_value(graph, node.output(), same);
  return true;
}

}  // namespace

/// Applies every operator's own rules (OpDef::fold) until none does anything. Rules only ever remove nodes or make
/// them simpler, so this ends.
ir::Graph canonicalise(ir::Graph graph, const PassContext&) {
  for (bool changed = true; changed;) {
    changed = false;
    for (ir::Node* node : body_nodes(graph)) changed = apply_rules(graph, *node) || changed;
    changed = erase_dead(graph) || changed;
  }
  return graph;
}

}  // namespace cuvil::passes
