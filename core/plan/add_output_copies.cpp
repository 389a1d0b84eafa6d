#include <set>

#include "core/ops/builder.h"
#include "core/plan/memory.h"

namespace cuvil::plan {

const ir::Value* memory_of(const ir::Value* value) {
  while (value->producer && ops::def(*value->producer).is(ops::kView)) value = value->producer->input(0);
  return value;
}

ir::Graph add_output_copies(ir::Graph graph) {
  std::set<const ir::Value*> taken;
  std::vector<ir::Value*> results = graph.body.results;
  for (ir::Value*& result : results) {
    const ir::Value* memory = memory_of(result);
    const bool own = memory->producer && !ir::constant_of(memory) && taken.insert(memory).second;
    if (own) continue;
    ops::Builder builder(graph);
    if (result->producer) builder.at(result->producer->location);
    result = builder.add("Identity", {result}, {}, result->name + "_out");
  }
  graph.body.results = std::move(results);
  return graph;
}

}  // namespace cuvil::plan
