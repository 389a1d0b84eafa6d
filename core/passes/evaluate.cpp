#include "core/passes/evaluate.h"

#include <cstring>
#include <limits>

#include "core/base/error.h"
#include "core/ops/op.h"

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

using Tensors = std::vector<ir::Tensor>;

/// Results of a region for the values of its parameters.
Tensors evaluate_region(const ir::Region& region, const Tensors& inputs, const std::map<std::string, int64_t>& symbols,
                        const TargetInfo& target);

Tensors evaluate_loop(const ir::Node& node, const std::vector<const ir::Tensor*>& inputs,
                      const std::map<std::string, int64_t>& symbols, const TargetInfo& target) {
  if (!node.attr<std::vector<std::string>>("sets").empty())
    throw_unsupported("a Loop whose number of iterations depends on data cannot be interpreted", node.location);
  const ir::Region& body = node.regions[0];
  const auto carried = static_cast<size_t>(node.attr<int64_t>("carried"));
  const int64_t trips = inputs[0] ? inputs[0]->as_int(0) : std::numeric_limits<int64_t>::max();
  bool goes_on = !inputs[1] || inputs[1]->as_int(0) != 0;
  Tensors state(1);
  for (size_t i = 2; i < inputs.size(); ++i) state.push_back(*inputs[i]);
  Tensors results;
  std::vector<uint8_t*> stacked;
  for (size_t i = carried; i < node.outputs.size(); ++i) {
    ir::Type type = node.output(i)->type;
    for (Dim& d : type.shape) d = d.evaluate(symbols).value();
    auto [tensor, bytes] = ir::Tensor::allocate(std::move(type));
    results.push_back(std::move(tensor));
    stacked.push_back(bytes);
  }
  for (int64_t step = 0; goes_on && step < trips; ++step) {
    state[0] = ir::Tensor::from_ints({step});
    state[0].type.shape.clear();
    const Tensors next = evaluate_region(body, state, symbols, target);
    goes_on = next[0].as_int(0) != 0;
    for (size_t i = 0; i < carried; ++i) state[1 + i] = next[1 + i];
    for (size_t i = 0; i < stacked.size(); ++i) {
      const ir::Tensor& slice = next[1 + carried + i];
      CUVIL_CHECK((step + 1) * slice.bytes() <= results[i].bytes(), "a loop runs longer than it says");
      std::memcpy(stacked[i] + step * slice.bytes(), slice.raw(), static_cast<size_t>(slice.bytes()));
    }
  }
  results.insert(results.begin(), state.begin() + 1, state.begin() + 1 + static_cast<int64_t>(carried));
  return results;
}

Tensors evaluate_control(const ir::Node& node, const std::vector<const ir::Tensor*>& inputs,
                         const std::map<std::string, int64_t>& symbols, const TargetInfo& target) {
  if (node.regions.size() == 1) return evaluate_loop(node, inputs, symbols, target);
  Tensors captured;
  for (size_t i = 1; i < inputs.size(); ++i) captured.push_back(*inputs[i]);
  return evaluate_region(node.regions[inputs[0]->as_int(0) != 0 ? 0 : 1], captured, symbols, target);
}

Tensors evaluate_region(const ir::Region& region, const Tensors& inputs, const std::map<std::string, int64_t>& symbols,
                        const TargetInfo& target) {
  std::map<const ir::Value*, ir::Tensor> values;
  for (size_t i = 0; i < inputs.size(); ++i) values[region.params[i].get()] = inputs[i];
  for (const auto& node : region.nodes) {
    if (const ir::Tensor* t = node->outputs.size() == 1 ? ir::constant_of(node->output()) : nullptr) {
      values[node->output()] = *t;
      continue;
    }
    const bool control = ops::def(*node).is(ops::kControl);
    if (!control && !ops::can_evaluate(*node))
      throw_unsupported(node->op + " has no loop nest that could be interpreted", node->location);
    std::vector<const ir::Tensor*> operands;
    for (const ir::Value* v : node->inputs()) operands.push_back(v ? &values.at(v) : nullptr);
    Tensors results = control ? evaluate_control(*node, operands, symbols, target)
                              : ops::evaluate_node(*node, operands, symbols, target);
    for (size_t i = 0; i < results.size(); ++i) values[node->output(i)] = std::move(results[i]);
  }
  Tensors results;
  for (const ir::Value* v : region.results) results.push_back(values.at(v));
  return results;
}

}  // namespace

std::vector<ir::Tensor> evaluate(const ir::Graph& graph, const std::vector<ir::Tensor>& inputs,
                                 const TargetInfo& target) {
  return evaluate_region(graph.body, inputs, bind_symbols(graph, inputs), target);
}

}  // namespace cuvil::passes
