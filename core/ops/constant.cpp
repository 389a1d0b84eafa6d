#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_constant() {
  OpDef d;
  d.name = "Constant";
  d.doc = "y = value, of any type and layout. It lies in the model's constants and has no kernel.";
  d.outputs = {{"y", "of the type of value"}};
  d.attributes = {required("value", AttrKind::tensor, "the tensor")};
  d.traits = kConstant | kPure;
  d.dtypes = all_dtypes();
  d.infer = [](const InferContext& c) { return std::vector<ir::Type>{c.node.attr<ir::Tensor>("value").type}; };
  d.flops = [](const ir::Node&) { return Dim(0); };
  return d;
}

}  // namespace cuvil::ops
