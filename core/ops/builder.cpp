#include "core/ops/builder.h"

namespace cuvil::ops {

ir::Node* Builder::add_node(std::string_view op, std::vector<ir::Value*> inputs, ir::Attributes attributes,
                            std::string_view name, std::vector<ir::Region> regions) {
  // Types depend on the normalised node, so it is created without outputs and tried out first.
  ir::Node probe;
  probe.op = std::string(op);
  probe.attributes = std::move(attributes);
  probe.location = location_;
  for (ir::Value* v : inputs) probe.add_input(v);
  probe.regions = std::move(regions);
  normalise(probe);
  std::vector<ir::Type> types = infer(probe);
  ir::Attributes normal = std::move(probe.attributes);
  probe.clear_inputs();

  std::optional<ir::Node*> before;
  if (before_) before = before_;
  ir::Node* node = graph_.create(std::string(op), std::move(inputs), std::move(normal), std::move(types), location_,
                                 region_, before);
  node->regions = std::move(probe.regions);
  if (!name.empty()) node->output()->name = graph_.fresh_name(name);
  return node;
}

ir::Value* Builder::add(std::string_view op, std::vector<ir::Value*> inputs, ir::Attributes attributes,
                        std::string_view name) {
  return add_node(op, std::move(inputs), std::move(attributes), name)->output();
}

ir::Value* Builder::constant(ir::Tensor tensor, std::string_view name) {
  return add("Constant", {}, {{"value", std::move(tensor)}}, name);
}

}  // namespace cuvil::ops
