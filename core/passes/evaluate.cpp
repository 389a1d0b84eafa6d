#include "core/passes/evaluate.h"

#include <cstring>

#include "core/base/error.h"
#include "core/kernel/interpret.h"
#include "core/ops/lower.h"

namespace cuvil::passes {
namespace {

ir::Type with_values(ir::Type type, const std::map<std::string, int64_t>& symbols) {
  for (Dim& d : type.shape) {
    const std::optional<int64_t> v = d.evaluate(symbols);
    if (!v) throw_shape_error("a size of " + d.str() + " has no value");
    d = Dim(*v);
  }
  return type;
}

}  // namespace

bool can_evaluate(const ir::Node& node) {
  const ops::OpDef& def = ops::def(node);
  return def.expr || def.lower || def.is(ops::kGroup);
}

std::vector<ir::Tensor> evaluate_node(const ir::Node& node, const std::vector<const ir::Tensor*>& inputs,
                                      const std::map<std::string, int64_t>& symbols, const TargetInfo& target) {
  const ops::Group group = ops::Group::of(node);
  const kernel::Kernel k = ops::lower_reference(group, target, "evaluate");
  std::vector<std::pair<kernel::Var, int64_t>> named;
  std::vector<int64_t> dims;
  for (const kernel::Var& d : k.dims) {
    const auto it = symbols.find(d->name);
    CUVIL_CHECK(it != symbols.end(), "symbol " + d->name + " has no value");
    named.emplace_back(d, it->second);
    dims.push_back(it->second);
  }

  std::vector<kernel::Argument> arguments;
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    if (!node.input(i)) continue;
    CUVIL_CHECK(i < inputs.size() && inputs[i], "input " + std::to_string(i) + " of " + node.op + " has no tensor");
    arguments.push_back({const_cast<uint8_t*>(inputs[i]->raw()), inputs[i]->bytes()});
  }
  std::vector<ir::Tensor> outputs;
  for (const auto& v : node.outputs) {
    auto [tensor, data] = ir::Tensor::allocate(with_values(v->type, symbols));
    const int64_t bytes = tensor.bytes();
    std::memset(data, 0xff, static_cast<size_t>(bytes));
    arguments.push_back({data, bytes});
    outputs.push_back(std::move(tensor));
  }
  std::vector<std::vector<uint8_t>> work;  // what phases share
  for (size_t p = arguments.size(); p < k.params.size(); ++p) {
    int64_t bytes = size_of(k.params[p]->type.dtype);
    for (const kernel::Expr& e : k.params[p]->shape) bytes *= kernel::evaluate(e, named).value();
    work.emplace_back(static_cast<size_t>(bytes), uint8_t{0xff});
  }
  for (auto& w : work) arguments.push_back({w.data(), static_cast<int64_t>(w.size())});

  if (const int32_t code = kernel::interpret(k, arguments, dims))
    throw_shape_error(node.op + " refuses its values (code " + std::to_string(code) + ")", node.location);
  return outputs;
}

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
