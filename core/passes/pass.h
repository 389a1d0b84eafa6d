// Passes: each one function in its own file, `Graph name(Graph, const PassContext&)`, returning its input untouched
// when there is nothing to do. The order stands in core/driver/pipeline.cpp.
#pragma once

#include <span>
#include <string_view>

#include "core/base/target_info.h"
#include "core/ir/graph.h"

namespace cuvil::passes {

struct PassContext {
  const TargetInfo& target;
  bool strict_numerics = false;  ///< numerics="strict": no rewrite that changes rounding (batch-norm folding stays out)
};

struct Pass {
  std::string_view name;
  std::string_view doc;
  ir::Graph (*run)(ir::Graph, const PassContext&);
  bool optional = true;  ///< CUVIL_SKIP may name it
};

/// Runs a pass over the graph, and over the regions of its control flow.
ir::Graph apply(const Pass& pass, ir::Graph graph, const PassContext& context);

/// All passes in pipeline order (pass_list.cpp): adding a pass is one file and one line there.
std::span<const Pass> all();
const Pass* find(std::string_view name);

}  // namespace cuvil::passes
