#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_fused() {
  OpDef d;
  d.name = "Fused";
  d.doc =
      "A fusion group: its one region's parameters are the inputs, the region's results the outputs. At most one of "
      "its nodes is not elementwise. Made by passes, lowered as one kernel (core/ops/lower.h).";
  d.inputs = {{"inputs", "any", true, true}};
  d.outputs = {{"results", "of the region", false, true}};
  d.traits = kPure | kGroup;
  d.dtypes = all_dtypes();
  d.infer = [](const InferContext& c) {
    if (c.node.regions.size() != 1) c.fail("a fusion group has one region");
    const ir::Region& region = c.node.regions[0];
    if (region.params.size() != c.inputs().size()) c.fail("the region has another number of parameters");
    for (size_t i = 0; i < region.params.size(); ++i)
      if (c.has_in(i) && region.params[i]->type != c.in(i))
        c.fail("parameter " + std::to_string(i) + " of the region has another type");
    std::vector<ir::Type> types;
    for (const ir::Value* v : region.results) types.push_back(v->type);
    return types;
  };
  d.flops = [](const ir::Node& node) {
    Dim sum = 0;
    for (const auto& n : node.regions[0].nodes) sum = sum + flops_of(*n);
    return sum;
  };
  return d;
}

}  // namespace cuvil::ops
