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

/// Values of inputs, by name: they take part in shape computations and become constants of the graph. The inputs stay;
/// the graph is right only for calls with these values.
using InputValues = std::map<std::string, ir::Tensor, std::less<>>;

struct ImportOptions {
  InputShapes shapes;
  InputValues values;
};

/// An input whose value decides shapes, axes or the like, which must be known before code can be made.
struct ValueInput {
  std::string name;
  int64_t most_elements;  ///< longer values are data: a compilation per value is refused
};

/// A graph; with `waits_for`, only its inputs are there, until import is repeated with values of these. With values,
/// others may turn out to be needed: repeat.
struct Imported {
  ir::Graph graph;
  std::vector<ValueInput> waits_for;  ///< in order of the model's inputs
};

/// As import_onnx and import_onnx_file below, but a model that waits for values is a result, not an error.
Imported try_import_onnx(std::string_view bytes, std::shared_ptr<const void> owner, const std::string& source,
                         const std::string& folder, const ImportOptions& options);
Imported try_import_onnx_file(const std::string& path, const ImportOptions& options);

/// Imports the model file. Weights stay where they are: the graph's constants point into the mapped file. External data
/// must lie in the model's folder or below it. Throws ModelError (damaged, or not ONNX) and UnsupportedError, which
/// lists every operator that is missing with its node names, or the inputs whose values are needed; ShapeError for
/// shapes and values that do not fit the model.
ir::Graph import_onnx_file(const std::string& path, const ImportOptions& options = {});

/// Imports a model in memory; `owner` keeps `bytes` alive as long as the graph. `folder` is where external data may
/// lie; empty: external data is refused. `source` is the name for messages.
ir::Graph import_onnx(std::string_view bytes, std::shared_ptr<const void> owner, const std::string& source,
                      const std::string& folder = "", const ImportOptions& options = {});

}  // namespace cuvil::frontends
