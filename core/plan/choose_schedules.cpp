#include "core/plan/choose_schedules.h"

#include <map>
#include <utility>

#include "core/ops/builder.h"
#include "core/ops/lower.h"
#include "core/ops/op.h"
#include "core/ops/reorder.h"
#include "core/schedules/schedule.h"

namespace cuvil::plan {
namespace {

bool is_fused(const ir::Node& node) { return ops::def(node).is(ops::kGroup); }

/// The input of the group's node that is input `i` of its anchor; -1 if a prologue is in between.
int outer_input(const ops::Group& group, size_t i) {
  if (group.anchor == group.node) return static_cast<int>(i);
  const ir::Region& region = group.node->regions[0];
  for (size_t p = 0; p < region.params.size(); ++p)
    if (region.params[p].get() == group.anchor->input(i)) return static_cast<int>(p);
  return -1;
}

/// Prepacked copies of constants, so that two users of one weight that want the same layout share it.
class Packer {
 public:
  explicit Packer(ir::Graph& graph) : graph_(graph) {}

  ir::Value* pack(ir::Value* value, const ir::Layout& layout) {
    auto key = std::pair(value->name, layout.str(value->type.rank()));
    auto found = packed_.find(key);
    if (found != packed_.end()) return found->second;
    ops::Builder builder(graph_, value->producer);
    builder.at(value->producer->location);
    ir::Value* result = builder.constant(ops::reorder(*ir::constant_of(value), layout), value->name + "_packed");
    return packed_[key] = result;
  }

 private:
  ir::Graph& graph_;
  std::map<std::pair<std::string, std::string>, ir::Value*> packed_;
};

void prepack(ir::Node& node, const schedules::Schedule& schedule, const TargetInfo& target, Packer& packer) {
  if (!schedule.prepack) return;
  const ops::Group group = ops::Group::of(node);
  for (const schedules::Prepack& wish : schedule.prepack(group, target)) {
    const int outer = outer_input(group, wish.input);
    CUVIL_CHECK(outer >= 0, "a prepacked input cannot have a prologue");
    ir::Value* value = node.input(static_cast<size_t>(outer));
    CUVIL_CHECK(ir::constant_of(value), "only constants are prepacked");
    if (value->type.layout == wish.layout) continue;
    ir::Value* packed = packer.pack(value, wish.layout);
    node.set_input(static_cast<size_t>(outer), packed);
    if (is_fused(node)) node.regions[0].params[static_cast<size_t>(outer)]->type = packed->type;
  }
}

}  // namespace

bool needs_kernel(const ir::Node& node) {
  if (is_fused(node)) return true;
  return !ops::def(node).is(ops::kConstant | ops::kView | ops::kHost | ops::kControl);
}

ir::Graph choose_schedules(ir::Graph graph, const TargetInfo& target, bool only_reference) {
  Packer packer(graph);
  std::vector<ir::Node*> nodes;
  for (auto& n : graph.body.nodes) nodes.push_back(n.get());
  for (ir::Node* node : nodes)
    if (ops::def(*node).is(ops::kControl))
      for (ir::Region& region : node->regions)
        graph.edit_region(region, [&](ir::Graph g) { return choose_schedules(std::move(g), target); });
  for (ir::Node* node : nodes) {
    if (!needs_kernel(*node)) continue;
    if (only_reference) {
      node->attributes["schedule"] = std::string("reference");
      continue;
    }
    const schedules::Choice choice = schedules::choose(ops::Group::of(*node), target);
    CUVIL_CHECK(choice.schedule, "no schedule takes node " + node->op);
    prepack(*node, *choice.schedule, target, packer);
    node->attributes["schedule"] = std::string(choice.schedule->name);
  }
  // Constants whose every user took a packed copy are dead now: a weight must not be resident twice.
  for (ir::Node* node : nodes)
    if (ops::def(*node).is(ops::kConstant) && graph.unused(node->output())) graph.erase(node);
  return graph;
}

}  // namespace cuvil::plan
