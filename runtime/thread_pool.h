// The process's one pool of threads. A run takes a team of idle threads, runs its phases with it and gives it back; the
// caller is always part of its team, so that a run never waits for a thread to become free. docs/runtime.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/abi/abi.h"

namespace cuvil::runtime {

struct Team;

/// tasks [0, tasks) of one phase of a kernel
struct Phase {
  cuvil_kernel_fn function;
  const void* const* buffers;
  const int64_t* dims;
  int64_t tasks;  ///< at most kMaxTasks
  char* scratch;  ///< of the caller; thread i of the team uses scratch + i * scratch_stride
  size_t scratch_stride;
};
inline constexpr int64_t kMaxTasks = int64_t{1} << 40;

/// Takes up to threads - 1 idle threads; as few as leave a core to each other run in progress. Null: the caller is
/// alone. Pair with end_team, also for null.
Team* begin_team(int threads);
/// Runs the phase to its end on the team. Returns 0 or a code that a task returned.
int32_t run_phase(Team* team, const Phase& phase);
void end_team(Team* team);

/// Threads started so far, for tests.
int pool_size();

}  // namespace cuvil::runtime
