// Graphs computed node by node: each node's plain loop nest, run by the interpreter of Kernel IR. Folds constants, and
// is the oracle for whole graphs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/target_info.h"
#include "core/ir/graph.h"

namespace cuvil::passes {

/// True if the node can be: it has a loop nest (or is a fusion group of such).
bool can_evaluate(const ir::Node& node);

/// Outputs of `node` for `inputs` (one per input of the node; null for absent ones), with the given values of symbols.
/// Inputs lie as their types say, outputs too; padding of blocks is filled with NaN, which must not show. Throws
/// ShapeError if the kernel refuses the sizes or values.
std::vector<ir::Tensor> evaluate_node(const ir::Node& node, const std::vector<const ir::Tensor*>& inputs,
                                      const std::map<std::string, int64_t>& symbols, const TargetInfo& target);

/// Results of a graph for `inputs` in order of its parameters, plain and row-major. Symbols get their values from the
/// inputs' shapes. Throws ShapeError for inputs that do not fit, UnsupportedError for host operators.
std::vector<ir::Tensor> evaluate(const ir::Graph& graph, const std::vector<ir::Tensor>& inputs,
                                 const TargetInfo& target);

}  // namespace cuvil::passes
