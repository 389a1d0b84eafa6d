#include "core/passes/group.h"

#include <algorithm>

#include "core/ops/op.h"
#include "core/passes/rewrite.h"

namespace cuvil::passes {

Grouping::Grouping(ir::Graph& graph) : graph_(graph), results_(all_results(graph)) {
  size_t i = 0;
  for (auto& n : graph.body.nodes) position_[n.get()] = i++;
}

bool Grouping::joins(const ir::Node* node, const ir::Value* like) const {
  if (taken(node) || !position_.count(node)) return false;  // gone, or inside of a region
  const ops::OpDef& def = ops::def(*node);
  if (!def.is(ops::kElementwise) || node->outputs.size() != 1) return false;
  const ir::Type& type = node->output()->type;
  return type.shape == like->type.shape && type.layout == like->type.layout;
}

const ir::Node* Grouping::only_exit(const std::set<const ir::Node*>& nodes) const {
  const ir::Node* exit = nullptr;
  for (const ir::Node* n : nodes) {
    const ir::Value* v = n->output();
    const bool read_outside =
        is_result(v) || std::any_of(v->users.begin(), v->users.end(), [&](ir::Node* u) { return !nodes.count(u); });
    if (!read_outside) continue;
    if (exit) return nullptr;
    exit = n;
  }
  return exit;
}

// Why there is no cycle: a path that leaves the set and comes back would leave through the one exit, and the exit is
// the last node of the set, so no member can read what depends on it.
std::vector<ir::Node*> Grouping::grow(ir::Node* seed, const Limits& limits) const {
  const auto by_position = [&](const ir::Node* a, const ir::Node* b) { return position(a) < position(b); };
  const auto sorted = [&](const std::set<const ir::Node*>& nodes) {
    std::vector<ir::Node*> v;
    for (const ir::Node* n : nodes) v.push_back(const_cast<ir::Node*>(n));
    std::sort(v.begin(), v.end(), by_position);
    return v;
  };
  const auto count_inputs = [](const std::set<const ir::Node*>& nodes) {
    std::set<const ir::Value*> inputs;
    for (const ir::Node* n : nodes)
      for (const ir::Value* v : n->inputs())
        if (v && !(v->producer && nodes.count(v->producer))) inputs.insert(v);
    return inputs.size();
  };

  std::set<const ir::Node*> nodes{seed};
  std::vector<ir::Node*> best{seed};
  const ir::Value* like = seed->output();
  while (nodes.size() < limits.nodes) {
    // The earliest elementwise reader of any member.
    ir::Node* next = nullptr;
    for (const ir::Node* n : nodes)
      for (ir::Node* u : n->output()->users)
        if (!nodes.count(u) && joins(u, like) && (!next || by_position(u, next))) next = u;
    if (!next) break;
    nodes.insert(next);
    // Producers that nobody else reads come along, and theirs.
    std::vector<ir::Node*> open{next};
    while (limits.producers && !open.empty() && nodes.size() < limits.nodes) {
      const ir::Node* n = open.back();
      open.pop_back();
      for (const ir::Value* v : n->inputs()) {
        if (!v || !v->producer || nodes.count(v->producer) || !joins(v->producer, like)) continue;
        if (!has_one_user(v, results_)) continue;
        nodes.insert(v->producer);
        open.push_back(v->producer);
      }
    }
    if (count_inputs(nodes) > limits.inputs) break;
    std::vector<ir::Node*> all = sorted(nodes);
    if (only_exit(nodes) == all.back()) best = std::move(all);
  }
  return best;
}

ir::Node* Grouping::fuse(const std::vector<ir::Node*>& nodes, const ir::Node* anchor) {
  ir::Node* last = nodes.back();
  const std::set<const ir::Node*> members(nodes.begin(), nodes.end());

  ir::Region region;
  std::vector<ir::Value*> inputs;
  std::map<const ir::Value*, ir::Value*> inside;  // of values from outside
  const auto param = [&](ir::Value* outer) {
    auto p = std::make_unique<ir::Value>();
    p->name = graph_.fresh_name("p");
    p->type = outer->type;
    inputs.push_back(outer);
    region.params.push_back(std::move(p));
    return region.params.back().get();
  };
  const auto copy_constant = [&](ir::Value* outer) {
    return graph_
        .create(outer->producer->op, {}, outer->producer->attributes, {outer->type}, outer->producer->location, &region)
        ->output();
  };
  for (ir::Node* n : nodes)
    for (size_t i = 0; i < n->inputs().size(); ++i) {
      ir::Value* v = n->input(i);
      if (!v || (v->producer && members.count(v->producer))) continue;
      auto [it, fresh] = inside.try_emplace(v);
      if (fresh) {
        const ir::Tensor* t = n == anchor ? nullptr : ir::constant_of(v);
        it->second = t && num_elements(t->type.shape).as_const() == 1 ? copy_constant(v) : param(v);
      }
    }

  ir::Node* fused = graph_.create("Fused", inputs, {}, {last->output()->type},
                                  anchor ? anchor->location : last->location, nullptr, last);
  graph_.replace_uses(last->output(), fused->output());
  if (results_.count(last->output())) results_.insert(fused->output());
  std::swap(fused->output()->name, last->output()->name);
  for (ir::Node* n : nodes) {
    for (size_t i = 0; i < n->inputs().size(); ++i)
      if (auto it = inside.find(n->input(i)); it != inside.end()) n->set_input(i, it->second);
    const auto at =
        std::find_if(graph_.body.nodes.begin(), graph_.body.nodes.end(), [&](const auto& p) { return p.get() == n; });
    region.nodes.splice(region.nodes.end(), graph_.body.nodes, at);
    taken_.insert(n);
  }
  region.results.push_back(last->output());
  fused->regions.push_back(std::move(region));
  position_[fused] = position(last);
  taken_.insert(fused);
  return fused;
}

}  // namespace cuvil::passes
