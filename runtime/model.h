// What a cuvil_model and a cuvil_context are inside.
#pragma once

#include <time.h>

#include <atomic>
#include <new>

#include "cuvil/runtime.h"
#include "runtime/host_ops/host_op.h"
#include "runtime/program.h"
#include "runtime/shape_plan.h"

namespace cuvil::runtime {
struct Artifact;
/// Unmaps and unloads.
void close_artifact(Artifact* artifact);

/// A model that is made in steps; the last reference frees it.
cuvil_model* new_model();
void release_model(cuvil_model* model);

/// Looks every kernel's phases up.
cuvil_status resolve_kernels(cuvil_model* model, cuvil_kernel_fn (*find)(void* user, const char* symbol), void* user);
/// Evaluates the plan of a program without symbols once, so that what is wrong with it shows at open.
cuvil_status check_static_plan(const Program& program);

inline int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * int64_t{1000000000} + t.tv_nsec;
}
}  // namespace cuvil::runtime

/// Immutable once made; shared by contexts and threads.
struct cuvil_model {
  std::atomic<int> references{1};
  cuvil::runtime::Program program;
  cuvil::runtime::Array<cuvil_kernel_fn> functions;  ///< empty: cannot run (inspect_only)
  cuvil::runtime::Array<const void*> constants;
  bool runnable = false;
  cuvil::runtime::Artifact* artifact = nullptr;  ///< null: made by model_from_program
  void (*release)(void* user) = nullptr;
  void* user = nullptr;
};

/// One thread at a time.
struct cuvil_context {
  static constexpr size_t kMaxPlans = 16;  ///< shapes whose plan is kept

  struct StepTimes {
    int64_t runs, last_ns, total_ns;
  };

  cuvil_model* model = nullptr;
  int threads = 1;
  std::atomic<bool> busy{false};

  cuvil::runtime::ShapePlan plans[kMaxPlans];
  size_t plan_count = 1;  ///< slots in use: 1 for a program without symbols
  cuvil::runtime::ShapePlan* plan = nullptr;
  uint64_t clock = 0;
  cuvil::runtime::Array<int64_t> plan_memory;
  cuvil::runtime::PlanWork work;

  cuvil::runtime::Region arena, scratch, staging;
  size_t scratch_stride = 0;

  // Of the run in progress.
  cuvil::runtime::Array<int64_t> symbols;     ///< their values, true ones once a host operator has set them
  cuvil::runtime::Array<int64_t> live_sizes;  ///< plan's sizes with data-dependent ones updated; unused without any
  cuvil::runtime::Array<char*> pointers;      ///< start of every buffer that is no view
  cuvil::runtime::Array<const void*> arguments;
  cuvil::runtime::Array<int64_t> dims;
  cuvil::runtime::Array<cuvil::runtime::HostTensor> host_tensors;
  cuvil::runtime::Array<int64_t> host_dims;
  cuvil::runtime::Array<const int64_t*> input_shapes;
  cuvil::runtime::Array<int64_t> output_dims;  ///< of all outputs, one after the other

  bool profiling = false;
  cuvil::runtime::Array<StepTimes> times;
  mutable char location_text[512] = "";
};
