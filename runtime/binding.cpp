#include "runtime/binding.h"

#include <cstdio>

#include "runtime/error.h"

namespace cuvil::runtime {

namespace {

using cvl::kNone;

/// "N = 5, N being axis 1 of 'ids'", for messages.
void describe_symbols(const Program& p, const int64_t* symbols, char* text, size_t room) {
  size_t used = 0;
  text[0] = 0;
  for (uint32_t i = 0; i < p.symbols.size() && used + 1 < room; ++i) {
    const Symbol& s = p.symbols[i];
    if (s.input == kNone) continue;
    const int n = snprintf(text + used, room - used, "%s%.40s = %lld (axis %u of '%.40s')", used ? ", " : "", s.name,
                           static_cast<long long>(symbols[i]), s.axis, p.inputs[s.input].info.name);
    if (n > 0) used += static_cast<size_t>(n);
  }
}

cuvil_status check_shapes(const Program& p, const ShapePlan& plan, const int64_t* const* shapes) {
  for (uint32_t i = 0; i < p.inputs.size(); ++i) {
    const Tensor& t = p.inputs[i];
    for (int32_t axis = 0; axis < t.info.ndim; ++axis) {
      const int64_t expected = plan.sizes[t.dims[axis]], got = shapes[i][axis];
      if (expected == got) continue;
      if (p.size_class[t.dims[axis]] == SizeClass::constant)
        return fail(CUVIL_SHAPE_ERROR, "input '%.80s': axis %d is %lld, expected %lld", t.info.name, axis,
                    static_cast<long long>(got), static_cast<long long>(expected));
      char where[256];
      describe_symbols(p, plan.symbols, where, sizeof(where));
      return fail(CUVIL_SHAPE_ERROR, "input '%.80s': axis %d is %lld, expected %.80s = %lld with %s", t.info.name, axis,
                  static_cast<long long>(got), t.info.dim_texts[axis], static_cast<long long>(expected), where);
    }
  }
  return check_requirements(p, plan.sizes, kNone);
}

bool same_symbols(const Program& p, const ShapePlan& plan, const int64_t* symbols) {
  for (uint32_t i = 0; i < p.symbols.size(); ++i)
    if (p.symbols[i].input != kNone && plan.symbols[i] != symbols[i]) return false;
  return true;
}

}  // namespace

cuvil_status check_requirements(const Program& p, const int64_t* sizes, uint32_t step) {
  const auto* requirements = p.source->requirements();
  for (uint32_t i = 0; requirements && i < requirements->size(); ++i) {
    const cvl::Requirement* r = requirements->Get(i);
    if (p.requirement_step[i] != step || sizes[r->left()] == sizes[r->right()]) continue;
    char location[256];
    format_location(p, r->location(), location, sizeof(location));
    return fail(CUVIL_SHAPE_ERROR, "%.200s: %lld and %lld differ%s%s", r->text() ? r->text()->c_str() : "dimensions",
                static_cast<long long>(sizes[r->left()]), static_cast<long long>(sizes[r->right()]),
                location[0] ? "; " : "", location);
  }
  return CUVIL_OK;
}

cuvil_status select_plan(cuvil_context* context, const int64_t* const* shapes) {
  const Program& p = context->model->program;
  for (uint32_t i = 0; i < p.symbols.size(); ++i) {
    const Symbol& s = p.symbols[i];
    if (s.input == kNone) continue;
    const int64_t value = shapes[s.input][s.axis];
    if (value < s.min || value > s.max)
      return fail(CUVIL_SHAPE_ERROR, "input '%.80s': axis %u is %lld, but %.40s is from %lld to %lld",
                  p.inputs[s.input].info.name, s.axis, static_cast<long long>(value), s.name,
                  static_cast<long long>(s.min), static_cast<long long>(s.max));
    context->symbols[i] = value;
  }
  ShapePlan* plan = context->plan && same_symbols(p, *context->plan, context->symbols.data()) ? context->plan : nullptr;
  ShapePlan* oldest = &context->plans[0];
  for (size_t i = 0; !plan && i < context->plan_count; ++i) {
    ShapePlan* candidate = &context->plans[i];
    if (candidate->valid && same_symbols(p, *candidate, context->symbols.data())) plan = candidate;
    if (!candidate->valid || (oldest->valid && candidate->last_used < oldest->last_used)) oldest = candidate;
  }
  if (!plan) {
    if (context->plan == oldest) context->plan = nullptr;
    for (uint32_t i = 0; i < p.symbols.size(); ++i) oldest->symbols[i] = context->symbols[i];
    if (const cuvil_status status = evaluate_plan(p, oldest, &context->work)) return status;
    plan = oldest;
  }
  plan->last_used = ++context->clock;
  if (const cuvil_status status = check_shapes(p, *plan, shapes)) return status;
  context->plan = plan;
  return CUVIL_OK;
}

cuvil_status reserve_memory(cuvil_context* context) {
  const ShapePlan& plan = *context->plan;
  if (!context->arena.reserve(static_cast<size_t>(plan.arena_bytes)))
    return out_of_memory("the arena", static_cast<unsigned long long>(plan.arena_bytes));
  // A page per thread, and a line more so that the threads' scratch does not fall on the same cache sets.
  const size_t stride = (static_cast<size_t>(plan.scratch_bytes) + 4095) / 4096 * 4096 + 64;
  if (stride > context->scratch_stride) {
    const size_t bytes = stride * static_cast<size_t>(context->threads);
    context->scratch_stride = 0;
    if (plan.scratch_bytes > 0 && !context->scratch.reserve(bytes)) return out_of_memory("scratch", bytes);
    context->scratch_stride = stride;
  }
  return CUVIL_OK;
}

void set_output_dims(cuvil_context* context, const int64_t* sizes) {
  int64_t* dims = context->output_dims.data();
  for (const Tensor& t : context->model->program.outputs)
    for (int32_t i = 0; i < t.info.ndim; ++i) *dims++ = sizes[t.dims[i]];
}

}  // namespace cuvil::runtime
