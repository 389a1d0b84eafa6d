#include "core/passes/rewrite.h"

#include <algorithm>

namespace cuvil::passes {

std::vector<ir::Node*> body_nodes(ir::Graph& graph) {
  std::vector<ir::Node*> nodes;
  for (auto& n : graph.body.nodes) nodes.push_back(n.get());
  return nodes;
}

void edit_control_regions(ir::Graph& graph, const std::function<ir::Graph(ir::Graph)>& edit) {
  for (ir::Node* node : body_nodes(graph))
    if (ops::def(*node).is(ops::kControl))
      for (ir::Region& region : node->regions) graph.edit_region(region, edit);
}

std::set<const ir::Value*> all_results(ir::Graph& graph) {
  std::set<const ir::Value*> results(graph.body.results.begin(), graph.body.results.end());
  graph.for_each_node([&](ir::Node& n) {
    for (const ir::Region& r : n.regions) results.insert(r.results.begin(), r.results.end());
  });
  return results;
}

bool has_one_user(const ir::Value* value, const std::set<const ir::Value*>& results) {
  const auto& users = value->users;
  return !users.empty() && std::all_of(users.begin(), users.end(), [&](ir::Node* n) { return n == users[0]; }) &&
         !results.count(value);
}

std::optional<double> scalar_of(const ir::Value* value) {
  const ir::Tensor* t = ir::constant_of(value);
  if (!t || !is_float(t->type.dtype) || num_elements(t->type.shape).as_const() != 1 || !t->type.layout.is_plain())
    return std::nullopt;
  return t->as_double(0);
}

bool erase_dead(ir::Graph& graph) {
  const std::set<const ir::Value*> results = all_results(graph);
  std::vector<ir::Node*> nodes = body_nodes(graph);
  bool changed = false;
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    const bool dead = ops::def(**it).is(ops::kPure) &&
                      std::all_of((*it)->outputs.begin(), (*it)->outputs.end(),
                                  [&](const auto& v) { return v->users.empty() && !results.count(v.get()); });
    if (!dead) continue;
    graph.erase(*it);
    changed = true;
  }
  return changed;
}

void replace_value(ir::Graph& graph, ir::Value* from, ir::Value* to) {
  CUVIL_CHECK(from->type == to->type, "'" + from->name + "' is replaced by a value of another type");
  graph.replace_uses(from, to);
}

void replace_by_new(ir::Graph& graph, ir::Value* from, ir::Value* to) {
  replace_value(graph, from, to);
  std::swap(from->name, to->name);
}

}  // namespace cuvil::passes
