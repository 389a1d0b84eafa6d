// Graphs computed node by node (core/ops/evaluate_node.h): the oracle for whole graphs.
#pragma once

#include <vector>

#include "core/base/target_info.h"
#include "core/ir/graph.h"
#include "core/ops/evaluate_node.h"

namespace cuvil::passes {

using ops::can_evaluate;
using ops::evaluate_node;

/// Results of a graph for `inputs` in order of its parameters, plain and row-major. Symbols get their values from the
/// inputs' shapes. Throws ShapeError for inputs that do not fit, UnsupportedError for host operators and
/// loops whose number of iterations depends on data.
std::vector<ir::Tensor> evaluate(const ir::Graph& graph, const std::vector<ir::Tensor>& inputs,
                                 const TargetInfo& target);

}  // namespace cuvil::passes
