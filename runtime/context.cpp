// Contexts: creation, reserving memory, figures, profiles.
#include "runtime/binding.h"
#include "runtime/error.h"
#include "runtime/model.h"
#include "runtime/run.h"
#include "runtime/tensors.h"
#include "runtime/thread_count.h"

namespace cuvil::runtime {

namespace {

cuvil_status allocate(cuvil_context* c) {
  const Program& p = c->model->program;
  c->plan_count = p.depends_on_shapes ? cuvil_context::kMaxPlans : 1;
  size_t output_dims = 0;
  for (const Tensor& t : p.outputs) output_dims += static_cast<size_t>(t.info.ndim);
  const size_t numbers = plan_numbers(p);
  if (!c->plan_memory.allocate(numbers * c->plan_count) || !c->symbols.allocate(p.symbols.size()) ||
      !c->live_sizes.allocate(p.depends_on_data ? p.size_count : 0) || !c->pointers.allocate(p.buffers.size()) ||
      !c->arguments.allocate(p.max_arguments) || !c->dims.allocate(p.max_dims) ||
      !c->host_tensors.allocate(p.max_operands) || !c->host_dims.allocate(p.max_operand_dims) ||
      !c->input_shapes.allocate(p.inputs.size()) || !c->output_dims.allocate(output_dims))
    return out_of_memory("the context", numbers * c->plan_count * 8);
  for (size_t i = 0; i < c->plan_count; ++i) {
    c->plans[i].symbols = c->plan_memory.data() + i * numbers;
    c->plans[i].sizes = c->plans[i].symbols + p.symbols.size();
    c->plans[i].arena_offsets = c->plans[i].sizes + p.size_count;
  }
  for (size_t i = 0; i < p.buffers.size(); ++i)
    if (p.buffers[i].kind == cvl::BufferKind::constant)
      c->pointers[i] = static_cast<char*>(const_cast<void*>(c->model->constants[p.buffers[i].index]));
  if (const cuvil_status status = c->work.allocate(p)) return status;
  if (p.depends_on_shapes) return CUVIL_OK;
  // Nothing to wait for: the first run finds its plan and memory ready.
  for (size_t i = 0; i < p.inputs.size(); ++i) c->input_shapes[i] = p.inputs[i].info.dims;
  if (const cuvil_status status = select_plan(c, c->input_shapes.data())) return status;
  return reserve_memory(c);
}

void free_context(cuvil_context* c) {
  cuvil_model* model = c->model;
  c->~cuvil_context();
  free(c);
  release_model(model);
}

}  // namespace

}  // namespace cuvil::runtime

using namespace cuvil::runtime;

extern "C" {

cuvil_status cuvil_context_create(cuvil_model* model, int32_t num_threads, cuvil_context** context) {
  *context = nullptr;
  if (!model->runnable)
    return fail(CUVIL_TARGET_ERROR, "this model was opened for inspection only, it has no code to run");
  int threads;
  if (const cuvil_status status = choose_threads(num_threads, &threads)) return status;
  void* memory = nullptr;
  if (posix_memalign(&memory, 64, sizeof(cuvil_context)) != 0)
    return out_of_memory("the context", sizeof(cuvil_context));
  auto* made = new (memory) cuvil_context;
  model->references.fetch_add(1, std::memory_order_relaxed);
  made->model = model;
  made->threads = threads;
  if (const cuvil_status status = allocate(made)) {
    free_context(made);
    return status;
  }
  *context = made;
  return CUVIL_OK;
}

void cuvil_context_destroy(cuvil_context* context) {
  if (context) free_context(context);
}

int32_t cuvil_context_threads(const cuvil_context* context) { return context->threads; }

cuvil_status cuvil_reserve(cuvil_context* context, const int64_t* const* shapes, size_t count) {
  const Claim claim(context);
  if (claim.refused()) return claim.status();
  const Program& p = context->model->program;
  if (count != p.inputs.size())
    return fail(CUVIL_SHAPE_ERROR, "%zu shapes were given, the model has %zu inputs", count, p.inputs.size());
  for (size_t i = 0; i < count; ++i)
    if (!shapes[i] && p.inputs[i].info.ndim > 0)
      return fail(CUVIL_SHAPE_ERROR, "the shape of input %zu ('%.80s') is missing", i, p.inputs[i].info.name);
  cuvil_status status = select_plan(context, shapes);
  if (!status) status = reserve_memory(context);
  if (!status) set_output_dims(context, context->plan->sizes);
  return status;
}

const int64_t* cuvil_output_dims(const cuvil_context* context, size_t index) {
  const Program& p = context->model->program;
  if (index >= p.outputs.size()) return nullptr;
  const int64_t* dims = context->output_dims.data();
  for (size_t i = 0; i < index; ++i) dims += p.outputs[i].info.ndim;
  return dims;
}

cuvil_status cuvil_memory(const cuvil_context* context, cuvil_memory_info* info) {
  *info = {};
  if (context->plan) {
    info->arena_bytes = context->plan->arena_bytes;
    info->arena_lower_bound = context->plan->lower_bound;
    info->scratch_bytes_per_thread = context->plan->scratch_bytes;
  }
  info->arena_reserved_bytes = static_cast<int64_t>(context->arena.bytes());
  info->staging_bytes = static_cast<int64_t>(context->staging.bytes());
  info->weight_bytes = context->model->program.weight_bytes;
  for (const ShapePlan& plan : context->plans) info->cached_plans += plan.valid;
  return CUVIL_OK;
}

cuvil_status cuvil_profile_enable(cuvil_context* context, int enable) {
  const Claim claim(context);
  if (claim.refused()) return claim.status();
  context->profiling = false;
  if (!enable) return CUVIL_OK;
  if (!context->times.allocate(context->model->program.steps.size()))
    return out_of_memory("the profile", context->model->program.steps.size() * 24);
  context->profiling = true;
  return CUVIL_OK;
}

size_t cuvil_step_count(const cuvil_context* context) { return context->model->program.steps.size(); }

cuvil_status cuvil_step(const cuvil_context* context, size_t index, cuvil_step_profile* profile) {
  const Program& p = context->model->program;
  if (index >= p.steps.size()) return fail(CUVIL_SHAPE_ERROR, "there is no step %zu", index);
  const Step& step = p.steps[index];
  *profile = {};
  profile->label = step.label;
  profile->kernel = step.name;
  profile->location = format_location(p, step.location, context->location_text, sizeof(context->location_text));
  if (index < context->times.size()) {
    profile->runs = context->times[index].runs;
    profile->last_ns = context->times[index].last_ns;
    profile->total_ns = context->times[index].total_ns;
  }
  return CUVIL_OK;
}
}
