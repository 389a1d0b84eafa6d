#include "core/passes/pass.h"
#include "core/passes/rewrite.h"

namespace cuvil::passes {

/// Removes pure nodes that lead to no result.
ir::Graph eliminate_dead_code(ir::Graph graph, const PassContext&) {
  erase_dead(graph);
  return graph;
}

}  // namespace cuvil::passes
