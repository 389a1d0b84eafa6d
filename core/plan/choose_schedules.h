// Picks a schedule for every node that becomes a kernel, and lays out its constant inputs as the schedule wants them.
#pragma once

#include "core/base/target_info.h"
#include "core/ir/graph.h"

namespace cuvil::plan {

/// Sets attribute "schedule" on every node that becomes a kernel and replaces constant inputs by prepacked ones
/// (at most one packing per weight and layout). Runs after all passes; deterministic.
/// `only_reference`: every node gets its operator's plain loop nest.
ir::Graph choose_schedules(ir::Graph graph, const TargetInfo& target, bool only_reference = false);

/// True if the node is carried out by a kernel: neither a constant, nor a view, a host operator or control flow.
bool needs_kernel(const ir::Node& node);

}  // namespace cuvil::plan
