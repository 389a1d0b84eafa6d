// From the inputs' shapes to a plan with memory.
#pragma once

#include "runtime/model.h"

namespace cuvil::runtime {

/// Makes the plan for these input shapes the context's, evaluating it unless it is one
/// of those kept. Ranks are checked. ShapeError for shapes that the program does not accept.
cuvil_status select_plan(cuvil_context* context, const int64_t* const* shapes);

/// Checks the requirements that can be checked after step `step`, which sets symbols; kNone: those that depend on
/// shapes only. ShapeError.
cuvil_status check_requirements(const Program& program, const int64_t* sizes, uint32_t step);

/// Makes room for the arena and scratch of the context's plan.
cuvil_status reserve_memory(cuvil_context* context);

/// Writes the outputs' dimensions from `sizes` to context->output_dims.
void set_output_dims(cuvil_context* context, const int64_t* sizes);

}  // namespace cuvil::runtime
