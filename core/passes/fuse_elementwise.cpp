#include <algorithm>

#include "core/ops/op.h"
#include "core/passes/group.h"
#include "core/passes/pass.h"
#include "core/passes/rewrite.h"

namespace cuvil::passes {
namespace {

/// Elementwise nodes that only this reduction reads, through its input 0: it loads every element once, so it can
/// compute them on the way. Nothing if they are all of another shape.
std::vector<ir::Node*> prologue_of(ir::Node* reduction, const Grouping& grouping,
                                   const std::set<const ir::Value*>& results) {
  std::vector<ir::Node*> nodes{reduction};
  const ir::Type& type = reduction->input(0)->type;
  std::vector<ir::Value*> open{reduction->input(0)};
  while (!open.empty() && nodes.size() < 8) {
    ir::Value* v = open.back();
    open.pop_back();
    ir::Node* n = v ? v->producer : nullptr;
    if (!n || grouping.taken(n) || !ops::def(*n).is(ops::kElementwise) || n->outputs.size() != 1) continue;
    if (std::find(nodes.begin(), nodes.end(), n) != nodes.end()) continue;  // read twice by the same node
    if (v->type.shape != type.shape || v->type.layout != type.layout || !has_one_user(v, results)) continue;
    nodes.insert(nodes.begin(), n);
    for (ir::Value* in : n->inputs()) open.push_back(in);
  }
  return nodes;
}

}  // namespace

/// What fuse_epilogues left: producers of reductions join them; elementwise nodes of one shape and layout, connected
/// and with a single result that is read elsewhere, become one node.
ir::Graph fuse_elementwise(ir::Graph graph, const PassContext&) {
  Grouping grouping(graph);
  const std::set<const ir::Value*> results = all_results(graph);
  bool changed = false;
  const auto fuse = [&](std::vector<ir::Node*> nodes, const ir::Node* anchor) {
    if (nodes.size() < 2) return;
    grouping.fuse(nodes, anchor);
    changed = true;
  };
  const std::vector<ir::Node*> order = body_nodes(graph);
  for (ir::Node* node : order) {
    if (!ops::def(*node).is(ops::kReduction) || node->outputs.size() != 1 || grouping.taken(node)) continue;
    std::vector<ir::Node*> nodes = prologue_of(node, grouping, results);
    std::sort(nodes.begin(), nodes.end(), [&](ir::Node* a, ir::Node* b) {
      return std::find(order.begin(), order.end(), a) < std::find(order.begin(), order.end(), b);
    });
    fuse(std::move(nodes), node);
  }
  for (ir::Node* node : order) {
    if (grouping.taken(node) || !ops::def(*node).is(ops::kElementwise) || node->outputs.size() != 1) continue;
    fuse(grouping.grow(node, {32, 16, true}), nullptr);
  }
  if (changed) erase_dead(graph);
  return graph;
}

}  // namespace cuvil::passes
