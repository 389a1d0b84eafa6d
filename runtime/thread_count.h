// How many threads this process may use: affinity, cpuset and CPU quota of its control groups.
#pragma once

#include "core/abi/abi.h"

namespace cuvil::runtime {

inline constexpr int kMaxThreads = 256;

/// CPUs that control groups (v1 or v2) leave to this process: the quota of its group and all groups above, rounded down
/// (a quota of 1.5 CPUs throttles two threads), at least 1, and the cpuset. 0 = no limit found. Files are read below
/// `root` ("" for the real ones): ROOT/proc/self/cgroup and ROOT/sys/fs/cgroup.
/// Source: Linux Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/cpusets.rst, scheduler/sched-bwc.rst.
int cgroup_cpu_limit(const char* root);

/// Number of CPUs in a list like "0-3,8,10-11"; 0 if malformed or empty.
int count_cpu_list(const char* text);

/// CPUs of the affinity mask.
int affinity_cpus();

/// The smallest of the above; read once per process.
int available_cpus();

/// Threads for a context: `requested`, or if 0 CUVIL_NUM_THREADS, or available_cpus(). UnsupportedError if out of
/// 1..kMaxThreads.
cuvil_status choose_threads(int requested, int* threads);

}  // namespace cuvil::runtime
