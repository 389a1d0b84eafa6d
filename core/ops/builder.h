// Adds nodes with inferred types: what importers, passes and tests build graphs with.
#pragma once

#include <string>
#include <vector>

#include "core/ops/op.h"

namespace cuvil::ops {

class Builder {
 public:
  /// Appends to the graph's body, or inserts before `before`.
  explicit Builder(ir::Graph& graph, ir::Node* before = nullptr) : graph_(graph), before_(before) {}
  /// Appends to a region, which need not belong to a node yet.
  Builder(ir::Graph& graph, ir::Region& region) : graph_(graph), region_(&region) {}

  ir::Graph& graph() { return graph_; }

  /// Location given to nodes from now on.
  void at(Location location) { location_ = std::move(location); }
  /// Creates a node, normalises attributes, infers types. `name` is given to output 0 (made unique).
  /// Throws ShapeError / ModelError with the location.
  ir::Value* add(std::string_view op, std::vector<ir::Value*> inputs, ir::Attributes attributes = {},
                 std::string_view name = "");
  ir::Node* add_node(std::string_view op, std::vector<ir::Value*> inputs, ir::Attributes attributes = {},
                     std::string_view name = "", std::vector<ir::Region> regions = {});
  ir::Value* constant(ir::Tensor tensor, std::string_view name = "");

 private:
  ir::Graph& graph_;
  ir::Region* region_ = nullptr;
  ir::Node* before_ = nullptr;
  Location location_;
};

}  // namespace cuvil::ops
