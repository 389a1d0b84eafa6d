#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_nonzero() {
  OpDef d;
  d.name = "NonZero";
  d.doc =
      "Indices of the elements that are not zero, in row-major order (ONNX NonZero). Sets one symbol, their number; a "
      "scalar counts as a vector of one element.";
  d.inputs = {{"x", "any shape"}};
  d.outputs = {{"y", "i64 [rank, number]"}};
  d.attributes = set_symbols();
  d.traits = kHost | kDataDependent | kPure;
  d.dtypes = all_dtypes();
  d.host = "NonZero";
  d.infer = [](const InferContext& c) {
    const Dim count = symbol_of(c);
    return std::vector<ir::Type>{{DType::i64, {Dim(std::max(1, c.in(0).rank())), count}, {}}};
  };
  return d;
}

}  // namespace cuvil::ops
