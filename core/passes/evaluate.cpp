#include "core/passes/evaluate.h"

#include "core/base/error.h"

namespace cuvil::passes {
namespace {

std::map<std::string, int64_t> bind_symbols(const ir::Graph& graph, const std::vector<ir::Tensor>& inputs) {
  if (inputs.size() != graph.body.params.size())
    throw_shape_error("graph '" + graph.name + "' takes " + std::to_string(graph.body.params.size()) +
                      " inputs, given are " + std::to_string(inputs.size()));
  std::map<std::string, int64_t> symbols;
  const auto each_size = [&](const auto& f) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ir::Value& p = *graph.body.params[i];
      const auto misfit = [&] {
        throw_shape_error("input '" + p.name + "' is declared " + p.type.str() + ", given is " + inputs[i].type.str());
      };
      if (p.type.dtype != inputs[i].type.dtype || p.type.rank() != inputs[i].type.rank() ||
          !inputs[i].type.layout.is_plain())
        misfit();
      for (size_t a = 0; a < p.type.shape.size(); ++a)
        if (!f(p.type.shape[a], inputs[i].type.shape[a].value())) misfit();
    }
  };
  each_size([&](const Dim& d, int64_t extent) {
    const Dim::View v = d.view();
    if (v.kind == Dim::Kind::symbol) symbols.emplace(std::string(v.name), extent);
    return true;
  });
  each_size([&](const Dim& d, int64_t extent) { return d.evaluate(symbols) == extent; });
  return symbols;
}

}  // namespace

std::vector<ir::Tensor> evaluate(const ir::Graph& graph, const std::vector<ir::Tensor>& inputs,
                                 const TargetInfo& target) {
  const std::map<std::string, int64_t> symbols = bind_symbols(graph, inputs);
  std::map<const ir::Value*, ir::Tensor> values;
  for (size_t i = 0; i < inputs.size(); ++i) values[graph.body.params[i].get()] = inputs[i];
  for (const auto& node : graph.body.nodes) {
    if (const ir::Tensor* t = node->outputs.size() == 1 ? ir::constant_of(node->output()) : nullptr) {
      values[node->output()] = *t;
      continue;
    }
    if (!can_evaluate(*node))
      throw_unsupported(node->op + " has no loop nest that could be interpreted", node->location);
    std::vector<const ir::Tensor*> operands;
    for (const ir::Value* v : node->inputs()) operands.push_back(v ? &values.at(v) : nullptr);
    std::vector<ir::Tensor> results = evaluate_node(*node, operands, symbols, target);
    for (size_t i = 0; i < results.size(); ++i) values[node->output(i)] = std::move(results[i]);
  }
  std::vector<ir::Tensor> results;
  for (const ir::Value* v : graph.body.results) results.push_back(values.at(v));
  return results;
}

}  // namespace cuvil::passes
