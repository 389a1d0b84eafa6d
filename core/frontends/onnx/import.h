// Imports ONNX models (opset 7 to 28 of the default domain) as CIR.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/ir/graph.h"

namespace cuvil::frontends {

/// Sizes of inputs, by name, that replace what the model declares: what is symbolic in a model becomes a number, which
/// lets schedules specialise. -1 leaves an axis as it is.
using InputShapes = std::map<std::string, std::vector<int64_t>, std::less<>>;

/// Imports the model file. Weights stay where they are: the graph's constants point into the mapped file. External data
/// must lie in the model's folder or below it. Throws ModelError (damaged, or not ONNX) and UnsupportedError, which
/// lists every operator that is missing with its node names; ShapeError for `shapes` that do not fit the model.
ir::Graph import_onnx_file(const std::string& path, const InputShapes& shapes = {});

/// Imports a model in memory; `owner` keeps `bytes` alive as long as the graph. `folder` is where external data may
/// lie; empty: external data is refused. `source` is the name for messages.
ir::Graph import_onnx(std::string_view bytes, std::shared_ptr<const void> owner, const std::string& source,
                      const std::string& folder = "", const InputShapes& shapes = {});

}  // namespace cuvil::frontends
