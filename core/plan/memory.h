// The memory side of a plan.
#pragma once

#include "core/ir/graph.h"
#include "core/plan/plan.h"

namespace cuvil::plan {

/// The buffer whose memory `buffer` is, following views.
int root_of(const Plan& plan, int buffer);

/// The value whose memory `value` is: views share their input's.
const ir::Value* memory_of(const ir::Value* value);

/// Gives every graph result memory of its own: a result that is an input, a constant, or shares memory with another
/// result gets a copy (an Identity node). Runs before choose_schedules.
ir::Graph add_output_copies(ir::Graph graph);

/// Lifetimes, in-place and concat views, and offsets (static shapes: by core/abi/place.h; symbolic: at run time, by the
/// same algorithm).
void assign_memory(Plan& plan);

}  // namespace cuvil::plan
