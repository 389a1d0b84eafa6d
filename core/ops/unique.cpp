#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_unique() {
  OpDef d;
  d.name = "Unique";
  d.doc =
      "The different slices of x along its middle axis (ONNX Unique), in order of their elements or of first "
      "appearance. "
      "Sets one symbol, their number.";
  d.inputs = {{"x", "[outer, slices, inner]"}};
  d.outputs = {{"y", "[outer, number, inner]"},
               {"first", "i64 [number]: where each appears first"},
               {"inverse", "i64 [slices]: which of y each slice is"},
               {"counts", "i64 [number]: how often each occurs"},
               {"order", "i64 [slices]: room for the work"}};
  d.attributes = set_symbols();
  d.attributes.push_back(optional("sorted", AttrKind::integer, "0: in order of first appearance", int64_t{1}));
  d.traits = kHost | kDataDependent | kPure;
  d.dtypes = all_dtypes();
  d.host = "Unique";
  d.infer = [](const InferContext& c) {
    need_rank(c, 0, 3);
    const Shape& x = c.in(0).shape;
    const Dim count = symbol_of(c);
    const ir::Type few = i64({count}), many = i64({x[1]});
    return std::vector<ir::Type>{{c.in(0).dtype, {x[0], count, x[2]}, {}}, few, many, few, many};
  };
  return d;
}

}  // namespace cuvil::ops
