// Imports ONNX models (opset 7 to 28 of the default domain) as CIR.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/ir/graph.h"

namespace cuvil::frontends {

/// Imports the model file. Weights stay where they are: the graph's constants point into the mapped file. External data
/// must lie in the model's folder or below it. Throws ModelError (damaged, or not ONNX) and UnsupportedError, which
/// lists every operator that is missing with its node names.
ir::Graph import_onnx_file(const std::string& path);

/// Imports a model in memory; `owner` keeps `bytes` alive as long as the graph. `folder` is where external data may
/// lie; empty: external data is refused. `source` is the name for messages.
ir::Graph import_onnx(std::string_view bytes, std::shared_ptr<const void> owner, const std::string& source,
                      const std::string& folder = "");

}  // namespace cuvil::frontends
