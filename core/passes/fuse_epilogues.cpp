#include "core/ops/op.h"
#include "core/passes/group.h"
#include "core/passes/pass.h"
#include "core/passes/rewrite.h"

namespace cuvil::passes {

/// Every node that can finish its results before storing them (kEpilogueOk) takes in the elementwise nodes behind it:
/// activations, residuals, scales, of its own shape and layout, as long as only the last result is read elsewhere.
/// Contractions choose first, since there a saved pass over memory costs no recomputation.
ir::Graph fuse_epilogues(ir::Graph graph, const PassContext&) {
  Grouping grouping(graph);
  bool changed = false;
  for (const bool contractions : {true, false}) {
    for (ir::Node* node : body_nodes(graph)) {
      if (grouping.taken(node) || node->outputs.size() != 1) continue;
      const ops::OpDef& def = ops::def(*node);
      if (!def.is(ops::kEpilogueOk) || def.is(ops::kContraction) != contractions) continue;
      const std::vector<ir::Node*> nodes = grouping.grow(node, {16, 24, false});
      if (nodes.size() == 1) continue;
      grouping.fuse(nodes, node);
      changed = true;
    }
  }
  if (changed) erase_dead(graph);
  return graph;
}

}  // namespace cuvil::passes
