// ONNX tensors and element types as CIR's.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/base/dtype.h"
#include "core/base/error.h"
#include "core/frontends/onnx/proto.h"
#include "core/ir/tensor.h"

namespace cuvil::frontends::onnx {

/// TensorProto.DataType as ours; nullopt for those we lack (strings, complex, float8, 4-bit).
std::optional<DType> dtype_of(int32_t onnx_type);
/// "float16", "string", ... for messages.
std::string onnx_type_name(int32_t onnx_type);

/// Where a model's bytes come from.
struct ModelSource {
  std::shared_ptr<const void> owner;
  std::string name;
  std::string folder;  ///< for external data; empty: refused
};

/// The tensor's contents: raw data is shared with the model's bytes or its external file. Throws ModelError (sizes that
/// do not fit, paths outside the folder) and UnsupportedError (element type).
ir::Tensor to_tensor(const ProtoTensor& proto, const ModelSource& source, const Location& where);

}  // namespace cuvil::frontends::onnx
