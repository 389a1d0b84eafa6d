// Fusion groups: choosing connected sets of nodes with one result, and making one node of each.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "core/ir/graph.h"

namespace cuvil::passes {

/// Positions of the body's nodes and the values that may not vanish, for one pass over a graph.
class Grouping {
 public:
  explicit Grouping(ir::Graph& graph);

  struct Limits {
    size_t nodes = 32;
    size_t inputs = 24;
    bool producers = false;  ///< also takes elementwise producers that only the group reads
  };
  /// The largest set found, in order, that begins with `seed` and consists beside it of elementwise nodes of its
  /// result's type of shape and layout, such that only the last one's output is read outside. {seed} if there is none.
  std::vector<ir::Node*> grow(ir::Node* seed, const Limits& limits) const;

  /// Moves nodes into a new Fused node, which takes the place of the last one, its output's name, and the location of
  /// `anchor` (or of the last one). Constants of one element are copied into it.
  ir::Node* fuse(const std::vector<ir::Node*>& nodes, const ir::Node* anchor);

  bool taken(const ir::Node* node) const { return taken_.count(node) != 0; }
  bool is_result(const ir::Value* value) const { return results_.count(value) != 0; }

 private:
  bool joins(const ir::Node* node, const ir::Value* like) const;
  /// The only node of the set whose output is read outside of it; null if there are several.
  const ir::Node* only_exit(const std::set<const ir::Node*>& nodes) const;
  size_t position(const ir::Node* node) const { return position_.at(node); }

  ir::Graph& graph_;
  std::map<const ir::Node*, size_t> position_;
  std::set<const ir::Value*> results_;
  std::set<const ir::Node*> taken_;  ///< gone into groups, or groups themselves
};

}  // namespace cuvil::passes
