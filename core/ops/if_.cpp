#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_if_() {
  OpDef d;
  d.name = "If";
  d.doc =
      "The results of its first region if the condition is true, else those of the second (ONNX If). The regions are "
      "closed: both have the inputs from the second on as their parameters.";
  d.inputs = {{"condition", "bool, one element"}, {"captured", "what the regions read", true, true}};
  d.outputs = {{"results", "of either region: equal types", false, true}};
  d.traits = kPure | kControl;
  d.dtypes = {DType::boolean};
  d.infer = [](const InferContext& c) {
    if (c.node.regions.size() != 2) c.fail("If has two regions");
    if (num_elements(c.in(0).shape).as_const() != 1) c.fail("the condition must have one element");
    std::vector<ir::Type> types;
    for (const ir::Region& region : c.node.regions) {
      if (region.params.size() + 1 != c.inputs().size()) c.fail("a region has another number of parameters");
      for (size_t i = 0; i < region.params.size(); ++i)
        if (!c.has_in(i + 1) || region.params[i]->type != c.in(i + 1))
          c.fail("parameter " + std::to_string(i) + " of a region has another type than what it stands for");
      if (&region == &c.node.regions[0]) {
        for (const ir::Value* v : region.results) types.push_back(v->type);
        continue;
      }
      if (region.results.size() != types.size()) c.fail("the branches have different numbers of results");
      for (size_t i = 0; i < types.size(); ++i)
        if (region.results[i]->type != types[i])
          c.fail("result " + std::to_string(i) + " is " + types[i].str() + " in one branch and " +
                 region.results[i]->type.str() + " in the other");
    }
    return types;
  };
  d.flops = [](const ir::Node& node) {
    Dim most = 0;
    for (const ir::Region& r : node.regions) {
      Dim sum = 0;
      for (const auto& n : r.nodes) sum = sum + flops_of(*n);
      most = max(most, sum);
    }
    return most;
  };
  return d;
}

}  // namespace cuvil::ops
