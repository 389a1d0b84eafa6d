#include "core/passes/run.h"

#include <vector>

#include "core/ops/op.h"

namespace cuvil::passes {

ir::Graph read(std::string_view text, std::string source) {
  ir::Graph graph = ir::parse(text, std::move(source));
  graph.for_each_node([](ir::Node& n) { ops::normalise(n); });
  ops::check(graph);
  return graph;
}

ir::Graph run_named(ir::Graph graph, std::string_view names, const PassContext& context, bool verify_each) {
  std::vector<const Pass*> passes;
  if (names == "all") {
    for (const Pass& p : all()) passes.push_back(&p);
    names = "";
  }
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    const Pass* pass = find(name);
    if (!pass) {
      std::string known;
      for (const Pass& p : all()) known += (known.empty() ? "" : ", ") + std::string(p.name);
      throw_model_error("there is no pass '" + std::string(name) + "'; there are " + known);
    }
    passes.push_back(pass);
  }
  for (const Pass* pass : passes) {
    graph = apply(*pass, std::move(graph), context);
    if (!verify_each) continue;
    try {
      ops::check(graph);
    } catch (const Error& e) {
      throw_internal("after pass " + std::string(pass->name) + ": " + e.what());
    }
  }
  return graph;
}

}  // namespace cuvil::passes
