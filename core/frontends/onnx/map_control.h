// If, Loop and Scan: nodes whose attributes are graphs, which may read values of the graphs around them.
#pragma once

#include "core/frontends/onnx/context.h"

namespace cuvil::frontends::onnx {

/// What the importer does for the graph of an attribute.
class SubgraphImporter {
 public:
  virtual ~SubgraphImporter() = default;
  /// Adds a graph's initializers and nodes to `builder`; `scope` holds its inputs and what it captures.
  virtual void import_graph(const ProtoGraph& graph, Scope& scope, ops::Builder& builder, int64_t opset, int depth) = 0;
  /// The value of a name in `scope`, made in `builder` if it is known only as numbers so far.
  virtual ir::Value* value_of(std::string_view name, Scope& scope, ops::Builder& builder) = 0;
  /// True if operators are missing already: then values may be absent.
  virtual bool is_incomplete() const = 0;
};

bool is_control(std::string_view op);
/// Maps If, Loop or Scan. An If whose condition is known becomes its branch.
void map_control(OpContext& c, Scope& scope, SubgraphImporter& importer, int depth);

}  // namespace cuvil::frontends::onnx
