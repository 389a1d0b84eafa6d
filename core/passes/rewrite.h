// What passes share: walking the body, asking about uses and constants, removing what is dead.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "core/ir/graph.h"
#include "core/ops/op.h"

namespace cuvil::passes {

/// The nodes of the body now, in order: safe to walk while nodes are added and erased (skip the erased yourself).
std::vector<ir::Node*> body_nodes(ir::Graph& graph);

/// Results of the graph and of every region in it.
std::set<const ir::Value*> all_results(ir::Graph& graph);

/// True if exactly one node reads the value (perhaps several times) and no region results in it.
bool has_one_user(const ir::Value* value, const std::set<const ir::Value*>& results);

/// Every region of the body's control flow (If, Loop) as a graph of its own.
void edit_control_regions(ir::Graph& graph, const std::function<ir::Graph(ir::Graph)>& edit);

/// The value of a constant with one floating-point element.
std::optional<double> scalar_of(const ir::Value* value);

/// Removes, last first, every node of the body that is pure and has no used output. Returns whether there was one.
bool erase_dead(ir::Graph& graph);

/// Every use of `from` becomes one of `to`; internal error if their types differ.
void replace_value(ir::Graph& graph, ir::Value* from, ir::Value* to);
/// The same for a `to` made in its place: it gets the name too, so that the user's names survive.
void replace_by_new(ir::Graph& graph, ir::Value* from, ir::Value* to);

}  // namespace cuvil::passes
