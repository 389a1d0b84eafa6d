// One node computed: its plain loop nest, run by the interpreter of Kernel IR. Folds constants at import and in passes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/target_info.h"
#include "core/ir/graph.h"

namespace cuvil::ops {

/// True if the node can be: it has a loop nest (or is a fusion group of such).
bool can_evaluate(const ir::Node& node);

/// Outputs of `node` for `inputs` (one per input of the node; null for absent ones), with the given values of symbols.
/// Inputs lie as their types say, outputs too; padding of blocks is filled with NaN, which must not show. Throws
/// ShapeError if the kernel refuses the sizes or values.
std::vector<ir::Tensor> evaluate_node(const ir::Node& node, const std::vector<const ir::Tensor*>& inputs,
                                      const std::map<std::string, int64_t>& symbols, const TargetInfo& target);

}  // namespace cuvil::ops
