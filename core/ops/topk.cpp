#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_topk() {
  OpDef d;
  d.name = "TopK";
  d.doc =
      "The k largest (or smallest) elements along an axis, in order, and their indices (ONNX TopK). Of equal elements "
      "the first comes first; NaN counts as the largest.";
  d.inputs = {{"x", "one axis at least"}};
  d.outputs = {{"values", "x's shape, k along the axis"}, {"indices", "i64, the same shape"}};
  d.attributes = {required("k", AttrKind::shape, "how many: one size"),
                  required("axis", AttrKind::integer, "the axis, not negative"),
                  optional("largest", AttrKind::integer, "0: the smallest", int64_t{1})};
  d.traits = kHost | kPure;
  d.dtypes = number_dtypes();
  d.host = "TopK";
  d.infer = [](const InferContext& c) {
    const int axis = axis_of(c, c.node.attr<int64_t>("axis"), c.in(0).rank());
    if (c.node.attr<int64_t>("axis") < 0) c.fail("the axis must not be negative");
    const Shape& k = c.node.attr<Shape>("k");
    if (k.size() != 1) c.fail("k must be one size");
    Shape shape = c.in(0).shape;
    Dim& extent = shape[static_cast<size_t>(axis)];
    if ((extent - k[0]).is_const() && (extent - k[0]).value() < 0)
      c.fail("k is " + k[0].str() + ", the axis has only " + extent.str() + " elements");
    extent = k[0];
    return std::vector<ir::Type>{{c.in(0).dtype, shape, {}}, {DType::i64, shape, {}}};
  };
  return d;
}

}  // namespace cuvil::ops
