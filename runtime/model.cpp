#include "runtime/model.h"

#include <cstdio>

#include "runtime/error.h"
#include "runtime/executor.h"

namespace cuvil::runtime {

cuvil_model* new_model() {
  void* memory = malloc(sizeof(cuvil_model));
  return memory ? new (memory) cuvil_model : nullptr;
}

void release_model(cuvil_model* model) {
  if (model->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  Artifact* artifact = model->artifact;
  void (*release)(void*) = model->release;
  void* user = model->user;
  model->~cuvil_model();
  free(model);
  if (artifact) close_artifact(artifact);
  if (release) release(user);
}

cuvil_status resolve_kernels(cuvil_model* model, cuvil_kernel_fn (*find)(void* user, const char* symbol), void* user) {
  const Program& p = model->program;
  if (!model->functions.allocate(p.function_count)) return out_of_memory("the table of kernels", p.function_count * 8);
  for (const Kernel& kernel : p.kernels) {
    for (uint32_t i = 0; i < kernel.phases; ++i) {
      char symbol[512];
      const int n = snprintf(symbol, sizeof(symbol), "%s_p%u", kernel.name, i);
      const bool fits = n > 0 && static_cast<size_t>(n) < sizeof(symbol);
      cuvil_kernel_fn function = fits ? find(user, symbol) : nullptr;
      if (!function) return fail(CUVIL_ARTIFACT_ERROR, "the code has no kernel '%.200s'", symbol);
      model->functions[kernel.first_function + i] = function;
    }
  }
  return CUVIL_OK;
}

cuvil_status check_static_plan(const Program& program) {
  if (program.depends_on_shapes) return CUVIL_OK;
  Array<int64_t> memory;
  PlanWork work;
  if (!memory.allocate(plan_numbers(program))) return out_of_memory("the plan", plan_numbers(program) * 8);
  if (const cuvil_status status = work.allocate(program)) return status;
  ShapePlan plan;
  plan.symbols = memory.data();
  plan.sizes = plan.symbols;
  plan.arena_offsets = plan.sizes + program.size_count;
  return evaluate_plan(program, &plan, &work);
}

namespace {

cuvil_status make(const ProgramSource& source, cuvil_model* model) {
  if (const cuvil_status status = load_program(source.program, source.program_bytes, &model->program)) return status;
  const auto* constants = model->program.source->constants();
  const size_t count = constants ? constants->size() : 0;
  if (count != source.constant_count)
    return fail(CUVIL_ARTIFACT_ERROR, "the program has %zu constants, %zu were given", count, source.constant_count);
  if (!model->constants.allocate(count)) return out_of_memory("the table of constants", count * 8);
  for (size_t i = 0; i < count; ++i) {
    if (!source.constants[i] && constants->Get(static_cast<uint32_t>(i))->bytes() > 0)
      return fail(CUVIL_ARTIFACT_ERROR, "constant %zu has no memory", i);
    if (reinterpret_cast<uintptr_t>(source.constants[i]) % CUVIL_ALIGNMENT != 0)
      return fail(CUVIL_ARTIFACT_ERROR, "constant %zu is not %d-byte aligned", i, CUVIL_ALIGNMENT);
    model->constants[i] = source.constants[i];
  }
  if (const cuvil_status status = resolve_kernels(model, source.find, source.user)) return status;
  if (const cuvil_status status = check_static_plan(model->program)) return status;
  model->runnable = true;
  return CUVIL_OK;
}

}  // namespace

cuvil_status model_from_program(const ProgramSource& source, cuvil_model** model) {
  *model = nullptr;
  cuvil_model* made = new_model();
  if (!made) {
    if (source.release) source.release(source.user);
    return out_of_memory("the model", sizeof(cuvil_model));
  }
  made->release = source.release;
  made->user = source.user;
  const cuvil_status status = make(source, made);
  if (status)
    release_model(made);
  else
    *model = made;
  return status;
}

}  // namespace cuvil::runtime

using namespace cuvil::runtime;

extern "C" {

void cuvil_close(cuvil_model* model) {
  if (model) release_model(model);
}

size_t cuvil_input_count(const cuvil_model* model) { return model->program.inputs.size(); }
size_t cuvil_output_count(const cuvil_model* model) { return model->program.outputs.size(); }

const cuvil_tensor_info* cuvil_input_info(const cuvil_model* model, size_t index) {
  return index < model->program.inputs.size() ? &model->program.inputs[index].info : nullptr;
}
const cuvil_tensor_info* cuvil_output_info(const cuvil_model* model, size_t index) {
  return index < model->program.outputs.size() ? &model->program.outputs[index].info : nullptr;
}
}
