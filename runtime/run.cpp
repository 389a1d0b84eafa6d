#include "runtime/run.h"

#include "runtime/binding.h"
#include "runtime/error.h"
#include "runtime/tensors.h"
#include "runtime/thread_pool.h"

namespace cuvil::runtime {

using cvl::kNone;

Claim::Claim(cuvil_context* context)
    : context_(context->busy.exchange(true, std::memory_order_acquire) ? nullptr : context) {}
Claim::~Claim() {
  if (context_) context_->busy.store(false, std::memory_order_release);
}
cuvil_status Claim::status() const {
  return fail(CUVIL_UNSUPPORTED_ERROR, "this context is in use by another thread; create one context per thread");
}

namespace {

/// The numbers and memory of the run in progress.
struct Run {
  cuvil_context& context;
  const Program& program;
  const ShapePlan& plan;
  const int64_t* sizes;
  Team* team;

  int64_t value(uint32_t size) const { return size == kNone ? 0 : sizes[size]; }
  char* address(uint32_t buffer, uint32_t offset) const {
    const Buffer& b = program.buffers[buffer];
    char* start = context.pointers[b.base];
    return start ? start + value(b.offset) + value(offset) : nullptr;  // null: an input or output of no bytes
  }
};

cuvil_status kernel_failed(const Run& run, const Step& step, int32_t code) {
  char location[256];
  format_location(run.program, step.location, location, sizeof(location));
  if (code == CUVIL_KERNEL_INDEX_OUT_OF_RANGE)
    return fail(CUVIL_SHAPE_ERROR, "an index is out of range in '%.120s'%s%s", step.label, location[0] ? " at " : "",
                location);
  return fail(CUVIL_INTERNAL_ERROR, "kernel %.120s of '%.120s' failed with code %d%s%s", step.name, step.label, code,
              location[0] ? " at " : "", location);
}

cuvil_status run_kernel(const Run& run, const Step& step) {
  cuvil_context& c = run.context;
  for (uint32_t i = 0; i < step.argument_count; ++i)
    c.arguments[i] = run.address(step.arguments[i].buffer, step.arguments[i].offset);
  for (uint32_t i = 0; i < step.dim_count; ++i) c.dims[i] = run.sizes[step.dims[i]];
  char* scratch = c.scratch.data();
  Phase phase = {nullptr, c.arguments.data(), c.dims.data(), 0, scratch, scratch ? c.scratch_stride : 0};
  for (uint32_t i = 0; i < step.phases; ++i) {
    phase.function = c.model->functions[step.function + i];
    phase.tasks = run.sizes[step.tasks[i]];
    if (const int32_t code = run_phase(run.team, phase)) return kernel_failed(run, step, code);
  }
  return CUVIL_OK;
}

/// Whether a jump is taken.
bool jumps(const Run& run, const Step& step) {
  return step.input_count == 0 || *run.address(step.operands[0].buffer, step.operands[0].offset) == 0;
}

cuvil_status run_host(const Run& run, const Step& step) {
  cuvil_context& c = run.context;
  // In a loop its symbols have their values of the iteration before.
  bool fresh = true;
  for (uint32_t i = 0; i < step.symbol_count; ++i) {
    int64_t& symbol = c.symbols[step.symbols[i]];
    fresh = fresh && symbol == run.plan.symbols[step.symbols[i]];
    symbol = run.plan.symbols[step.symbols[i]];
  }
  if (!fresh)
    if (const cuvil_status status = update_sizes(run.program, run.plan, c.symbols.data(), c.live_sizes.data()))
      return status;
  int64_t* dims = c.host_dims.data();
  for (uint32_t i = 0; i < step.input_count + step.output_count; ++i) {
    const Operand& o = step.operands[i];
    c.host_tensors[i] = {run.address(o.buffer, o.offset), o.dtype, o.ndim, dims};
    for (uint32_t k = 0; k < o.ndim; ++k) *dims++ = run.sizes[o.dims[k]];
  }
  int64_t set[8] = {}, limits[8] = {};
  for (uint32_t i = 0; i < step.symbol_count; ++i) limits[i] = run.plan.symbols[step.symbols[i]];
  const HostCall call = {c.host_tensors.data(), c.host_tensors.data() + step.input_count, step.source, set, limits};
  if (const cuvil_status status = step.host->run(call)) return explain(status, "in '%.120s'", step.label);
  if (step.symbol_count == 0) return CUVIL_OK;
  for (uint32_t i = 0; i < step.symbol_count; ++i) c.symbols[step.symbols[i]] = set[i];
  if (const cuvil_status status = update_sizes(run.program, run.plan, c.symbols.data(), c.live_sizes.data()))
    return status;
  return check_requirements(run.program, run.sizes, static_cast<uint32_t>(&step - run.program.steps.data()));
}

/// Inputs that kernels can read in place give their own memory, others a copy in the staging region.
cuvil_status bind_inputs(cuvil_context* c, const DLTensor* const* inputs, DLTensor* const* outputs,
                         size_t output_count) {
  const Program& p = c->model->program;
  const auto staged = [&](size_t i) {
    if (!is_contiguous(*inputs[i]) || !is_aligned(*inputs[i])) return true;
    for (size_t k = 0; k < output_count; ++k)
      if (overlap(*inputs[i], *outputs[k])) return true;
    return false;
  };
  const auto rounded = [](size_t bytes) { return (bytes + CUVIL_ALIGNMENT - 1) / CUVIL_ALIGNMENT * CUVIL_ALIGNMENT; };
  size_t bytes = 0;
  for (size_t i = 0; i < p.inputs.size(); ++i) {
    if (p.inputs[i].buffer == kNone || packed_bytes(*inputs[i]) == 0) continue;
    if (staged(i)) bytes += rounded(packed_bytes(*inputs[i]));
  }
  if (bytes > 0 && !c->staging.reserve(bytes)) return out_of_memory("copies of strided inputs", bytes);
  char* to = c->staging.data();
  for (size_t i = 0; i < p.inputs.size(); ++i) {
    if (p.inputs[i].buffer == kNone) continue;
    char*& pointer = c->pointers[p.inputs[i].buffer];
    pointer = data_of(*inputs[i]);
    if (packed_bytes(*inputs[i]) == 0 || !staged(i)) continue;
    pack_tensor(*inputs[i], to);
    pointer = to;
    to += rounded(packed_bytes(*inputs[i]));
  }
  return CUVIL_OK;
}

cuvil_status check_inputs(cuvil_context* c, const DLTensor* const* inputs, size_t count) {
  const Program& p = c->model->program;
  if (count != p.inputs.size())
    return fail(CUVIL_SHAPE_ERROR, "%zu inputs were given, the model has %zu", count, p.inputs.size());
  for (size_t i = 0; i < count; ++i) {
    if (const cuvil_status status = check_tensor(inputs[i], p.inputs[i], "input", i)) return status;
    c->input_shapes[i] = inputs[i]->shape;
  }
  if (const cuvil_status status = select_plan(c, c->input_shapes.data())) return status;
  for (size_t i = 0; i < count; ++i)
    if (p.inputs[i].fixed && !has_elements(*inputs[i], p.inputs[i].fixed, p.inputs[i].fixed_bytes))
      return fail(CUVIL_SHAPE_ERROR,
                  "input '%.80s' has other elements than the program was made for; compile for these, too",
                  p.inputs[i].info.name);
  return CUVIL_OK;
}

cuvil_status check_output(const cuvil_context* c, size_t i, const DLTensor* t, DLTensor* const* outputs) {
  const Tensor& expected = c->model->program.outputs[i];
  if (const cuvil_status status = check_tensor(t, expected, "output", i)) return status;
  if (expected.data_dependent)
    return fail(CUVIL_UNSUPPORTED_ERROR, "output '%.80s' has a shape that depends on data; let the runtime allocate it",
                expected.info.name);
  for (int32_t axis = 0; axis < t->ndim; ++axis) {
    const int64_t wanted = c->plan->sizes[expected.dims[axis]];
    if (t->shape[axis] != wanted)
      return fail(CUVIL_SHAPE_ERROR, "output '%.80s': axis %d is %lld, expected %lld", expected.info.name, axis,
                  static_cast<long long>(t->shape[axis]), static_cast<long long>(wanted));
  }
  if (!is_contiguous(*t) || !is_aligned(*t))
    return fail(CUVIL_SHAPE_ERROR, "output '%.80s' is not contiguous and aligned to its elements", expected.info.name);
  for (size_t k = 0; k < i; ++k)
    if (overlap(*t, *outputs[k])) return fail(CUVIL_SHAPE_ERROR, "outputs %zu and %zu share memory", k, i);
  return CUVIL_OK;
}

}  // namespace

cuvil_status run_steps(cuvil_context* context) {
  cuvil_context& c = *context;
  const Program& p = c.model->program;
  const ShapePlan& plan = *c.plan;
  for (uint32_t i = 0; i < p.arena.size(); ++i) c.pointers[p.arena[i]] = c.arena.data() + plan.arena_offsets[i];
  const int64_t* sizes = plan.sizes;
  if (p.depends_on_data) {
    memcpy(c.live_sizes.data(), plan.sizes, p.size_count * sizeof(int64_t));
    memcpy(c.symbols.data(), plan.symbols, p.symbols.size() * sizeof(int64_t));
    sizes = c.live_sizes.data();
  }
  const Run run = {c, p, plan, sizes, begin_team(c.threads)};
  cuvil_status status = CUVIL_OK;
  int64_t start = c.profiling ? now_ns() : 0;
  for (size_t i = 0, next = 0; i < p.steps.size() && !status; i = next) {
    const Step& step = p.steps[i];
    next = step.jump && jumps(run, step) ? step.target : i + 1;
    if (!step.jump) status = step.host ? run_host(run, step) : run_kernel(run, step);
    if (!c.profiling) continue;
    const int64_t now = now_ns();
    cuvil_context::StepTimes& times = c.times[i];
    times.last_ns = now - start;
    times.total_ns += times.last_ns;
    ++times.runs;
    start = now;
  }
  end_team(run.team);
  set_output_dims(context, sizes);
  return status;
}

}  // namespace cuvil::runtime

using namespace cuvil::runtime;

extern "C" {

cuvil_status cuvil_prepare(cuvil_context* context, const DLTensor* const* inputs, size_t count) {
  const Claim claim(context);
  if (claim.refused()) return claim.status();
  if (const cuvil_status status = check_inputs(context, inputs, count)) return status;
  set_output_dims(context, context->plan->sizes);
  return CUVIL_OK;
}

cuvil_status cuvil_run(cuvil_context* context, const DLTensor* const* inputs, size_t input_count,
                       DLTensor* const* outputs, size_t output_count) {
  const Claim claim(context);
  if (claim.refused()) return claim.status();
  cuvil_status status;
  if ((status = check_inputs(context, inputs, input_count)) || (status = reserve_memory(context))) return status;
  const Program& p = context->model->program;
  if (output_count != p.outputs.size())
    return fail(CUVIL_SHAPE_ERROR, "%zu outputs were given, the model has %zu", output_count, p.outputs.size());
  for (size_t i = 0; i < output_count; ++i) {
    if ((status = check_output(context, i, outputs[i], outputs))) return status;
    context->pointers[p.outputs[i].buffer] = data_of(*outputs[i]);
  }
  if ((status = bind_inputs(context, inputs, outputs, output_count))) return status;
  return run_steps(context);
}

cuvil_status cuvil_run_alloc(cuvil_context* context, const DLTensor* const* inputs, size_t input_count,
                             DLManagedTensor** outputs, size_t output_count) {
  const Claim claim(context);
  if (claim.refused()) return claim.status();
  for (size_t i = 0; i < output_count; ++i) outputs[i] = nullptr;
  cuvil_status status;
  if ((status = check_inputs(context, inputs, input_count)) || (status = reserve_memory(context))) return status;
  const Program& p = context->model->program;
  if (output_count != p.outputs.size())
    return fail(CUVIL_SHAPE_ERROR, "%zu outputs were given, the model has %zu", output_count, p.outputs.size());
  if ((status = bind_inputs(context, inputs, nullptr, 0))) return status;
  set_output_dims(context, context->plan->sizes);
  for (size_t i = 0; i < output_count && !status; ++i) {
    const Tensor& t = p.outputs[i];
    outputs[i] = new_tensor(t.info.dtype, t.info.ndim, cuvil_output_dims(context, i));
    if (outputs[i])
      context->pointers[t.buffer] = static_cast<char*>(outputs[i]->dl_tensor.data);
    else
      status =
          out_of_memory("an output", static_cast<unsigned long long>(context->plan->sizes[p.buffers[t.buffer].bytes]));
  }
  if (!status) status = run_steps(context);
  for (size_t i = 0; i < output_count && outputs[i]; ++i) {
    if (status) {
      outputs[i]->deleter(outputs[i]);
      outputs[i] = nullptr;
      continue;
    }
    const int64_t* dims = cuvil_output_dims(context, i);  // true ones now
    for (int32_t k = 0; k < p.outputs[i].info.ndim; ++k) outputs[i]->dl_tensor.shape[k] = dims[k];
  }
  return status;
}
}
