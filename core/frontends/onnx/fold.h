// Values that the importer must know now (axes, shapes, steps, conditions): computed from constants while it reads.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/ir/graph.h"

namespace cuvil::frontends::onnx {

/// A node needs the values of graph inputs to be mapped; the importer collects these.
struct NeedsValues {
  std::vector<const ir::Value*> inputs;
};

class Folder {
 public:
  /// Other parameters (of regions) have no value before the model runs.
  void add_graph_input(const ir::Value* value) { graph_inputs_.insert(value); }
  /// The value as a tensor if it is a constant, or computed from constants by few and small operations; else null.
  /// What was computed is remembered. The pointer is valid as long as this object.
  const ir::Tensor* constant(const ir::Value* value);
  /// The graph inputs that `value` would be computed from if they were constants; empty if that would not help.
  std::vector<const ir::Value*> inputs_of(const ir::Value* value) const;

 private:
  std::set<const ir::Value*> graph_inputs_;
  std::map<const ir::Value*, std::optional<ir::Tensor>> known_;  ///< nullopt: not from constants
};

}  // namespace cuvil::frontends::onnx
