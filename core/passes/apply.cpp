#include "core/ops/op.h"
#include "core/passes/pass.h"
#include "core/passes/rewrite.h"

namespace cuvil::passes {

ir::Graph apply(const Pass& pass, ir::Graph graph, const PassContext& context) {
  graph = pass.run(std::move(graph), context);
  edit_control_regions(graph, [&](ir::Graph inner) { return apply(pass, std::move(inner), context); });
  return graph;
}

}  // namespace cuvil::passes
