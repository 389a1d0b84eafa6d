// A program's numbers for given symbols: every size, the arena's layout, scratch. Contexts keep a few of them.
#pragma once

#include "runtime/program.h"

namespace cuvil::runtime {

/// Room that evaluating a plan needs; one per context.
struct PlanWork {
  Array<uint32_t> numbers;
  Array<int64_t> values;
  Array<uint64_t> items;  ///< PlaceItem

  cuvil_status allocate(const Program& program);
};

struct ShapePlan {
  int64_t* symbols = nullptr;        ///< their values; of data-dependent ones the upper bounds
  int64_t* sizes = nullptr;          ///< value of every size program
  int64_t* arena_offsets = nullptr;  ///< per arena buffer, in the order of Program::arena
  int64_t arena_bytes = 0, lower_bound = 0, scratch_bytes = 0;
  uint64_t last_used = 0;
  bool valid = false;
};

/// int64 numbers that the arrays of one plan take.
size_t plan_numbers(const Program& program);

/// Fills the plan for plan->symbols, whose input-bound values are set; checks that every tensor lies inside its buffer,
/// every buffer inside its memory, and all counts are in range. ShapeError, or ArtifactError for a program without
/// symbols.
cuvil_status evaluate_plan(const Program& program, ShapePlan* plan, PlanWork* work);

/// Evaluates again the sizes that depend on data, with the symbols' true values, into `sizes`. They must not exceed
/// those of the plan.
cuvil_status update_sizes(const Program& program, const ShapePlan& plan, const int64_t* symbols, int64_t* sizes);

}  // namespace cuvil::runtime
