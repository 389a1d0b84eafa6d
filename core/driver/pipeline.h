// The pipeline on one page: every step named, timed, dumpable (CUVIL_DUMP=after:NAME) and skippable (CUVIL_SKIP).
#pragma once

#include <string>
#include <vector>

#include "core/base/target_info.h"
#include "core/ir/graph.h"
#include "core/plan/plan.h"

namespace cuvil::driver {

struct StepTime {
  std::string name;
  double seconds = 0;
  int nodes = 0;  ///< of the graph after the step
};

struct Lowered {
  ir::Graph graph;  ///< after all passes, with schedules
  plan::Plan plan;
  std::vector<StepTime> times;
};

/// All passes, schedule choice and the plan, for one target. Without `optimize`, no optional pass runs, and every
/// operator keeps its plain loop nest: what optimised code is compared with.
Lowered lower(ir::Graph graph, const TargetInfo& target, bool strict_numerics, bool optimize = true);

/// Passes only: what cuvil-opt --pipeline and `--emit cir` show.
ir::Graph run_passes(ir::Graph graph, const TargetInfo& target, bool strict_numerics, std::vector<StepTime>* times);

}  // namespace cuvil::driver
