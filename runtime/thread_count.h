// How many threads a context uses.
#pragma once

#include "core/abi/abi.h"

namespace cuvil::runtime {

inline constexpr int kMaxThreads = 256;

/// The CPUs that affinity and control groups leave to this process (core/abi/available_cpus.h), at most kMaxThreads;
/// read once per process.
int default_threads();

/// Threads for a context: `requested`, or if 0 CUVIL_NUM_THREADS, or default_threads(). UnsupportedError if out of
/// 1..kMaxThreads.
cuvil_status choose_threads(int requested, int* threads);

}  // namespace cuvil::runtime
