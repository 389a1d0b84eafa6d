// How many CPUs this process may use: affinity, cpuset and CPU quota of its control groups. Header-only: compiler and
// runtime both ask.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cuvil {

/// Number of CPUs in a list like "0-3,8,10-11"; 0 if malformed or empty.
inline int count_cpu_list(const char* text) {
  int count = 0;
  const char* p = text;
  while (*p && *p != '\n') {
    char* end;
    const long first = strtol(p, &end, 10);
    if (end == p || first < 0) return 0;
    long last = first;
    if (*end == '-') {
      p = end + 1;
      last = strtol(p, &end, 10);
      if (end == p || last < first) return 0;
    }
    if (last - first > 1 << 20) return 0;
    count += static_cast<int>(last - first + 1);
    if (*end == ',')
      ++end;
    else if (*end && *end != '\n')
      return 0;
    p = end;
  }
  return count;
}

namespace detail {

/// Reads a small file into `text`, ends it with 0; false if it does not exist.
inline bool read_text(const char* path, char* text, size_t room) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  size_t used = 0;
  while (used + 1 < room) {
    const ssize_t n = read(fd, text + used, room - 1 - used);
    if (n <= 0) break;
    used += static_cast<size_t>(n);
  }
  close(fd);
  text[used] = 0;
  return used > 0;
}

inline void lower(int* limit, int value) {
  if (value > 0 && (*limit == 0 || value < *limit)) *limit = value;
}

inline int whole_cpus(long long quota, long long period) {
  if (quota <= 0 || period <= 0) return 0;
  const long long cpus = quota / period;
  return cpus < 1 ? 1 : cpus > 1 << 20 ? 1 << 20 : static_cast<int>(cpus);
}

/// One group: `folder` is an absolute path. Files that are not there do not limit.
inline void read_group(const char* folder, int* limit) {
  char path[1400], text[512];
  long long quota = 0, period = 0;
  snprintf(path, sizeof(path), "%s/cpu.max", folder);  // v2: "max 100000" or "150000 100000"
  if (read_text(path, text, sizeof(text)) && sscanf(text, "%lld %lld", &quota, &period) == 2)
    lower(limit, whole_cpus(quota, period));
  snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", folder);  // v1: -1 or a number
  if (read_text(path, text, sizeof(text)) && sscanf(text, "%lld", &quota) == 1) {
    snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", folder);
    if (read_text(path, text, sizeof(text)) && sscanf(text, "%lld", &period) == 1)
      lower(limit, whole_cpus(quota, period));
  }
  for (const char* file : {"cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"}) {
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    if (read_text(path, text, sizeof(text))) lower(limit, count_cpu_list(text));
  }
}

/// The group and all above it, up to the mount. A container may see only the mount's top.
inline void read_groups(const char* mount, const char* group, int* limit) {
  char folder[1300];
  snprintf(folder, sizeof(folder), "%s%s", mount, group);
  for (size_t n = strlen(folder); n > strlen(mount); --n) {  // cut at every slash
    if (folder[n] != 0 && folder[n] != '/') continue;
    folder[n] = 0;
    read_group(folder, limit);
  }
  read_group(mount, limit);
}

inline bool has_word(const char* list, const char* word) {  // "cpu,cpuacct"
  const size_t n = strlen(word);
  for (const char* p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : nullptr)
    if (strncmp(p, word, n) == 0 && (p[n] == 0 || p[n] == ',')) return true;
  return false;
}

}  // namespace detail

/// CPUs that control groups (v1 or v2) leave to this process: the quota of its group and all groups above, rounded down
/// (a quota of 1.5 CPUs throttles two threads), at least 1, and the cpuset. 0 = no limit found. Files are read below
/// `root` ("" for the real ones): ROOT/proc/self/cgroup and ROOT/sys/fs/cgroup.
/// Source: Linux Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/cpusets.rst, scheduler/sched-bwc.rst.
inline int cgroup_cpu_limit(const char* root) {
  char path[512], mount[768], text[8192];
  snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
  if (!detail::read_text(path, text, sizeof(text))) return 0;
  int limit = 0;
  for (char* line = text; line && *line;) {  // "5:cpu,cpuacct:/docker/1234" or, for v2, "0::/user.slice"
    char* next = strchr(line, '\n');
    if (next) *next++ = 0;
    char* controllers = strchr(line, ':');
    char* group = controllers ? strchr(controllers + 1, ':') : nullptr;
    if (group) {
      *group++ = 0;
      ++controllers;
      if (strstr(group, "..")) group = const_cast<char*>("");  // outside of what this namespace sees
      if (!*controllers) {
        for (const char* at : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
          snprintf(mount, sizeof(mount), "%s%s", root, at);
          detail::read_groups(mount, group, &limit);
        }
      }
      for (const char* name : {"cpu", "cpuset"}) {
        if (!detail::has_word(controllers, name)) continue;
        snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/%s", root, name);
        detail::read_groups(mount, group, &limit);
        if (strcmp(controllers, name) == 0) continue;
        snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/%s", root, controllers);
        detail::read_groups(mount, group, &limit);
      }
    }
    line = next;
  }
  return limit;
}

/// CPUs of the affinity mask.
inline int affinity_cpus() {
  unsigned long mask[256] = {};  // 16384 CPUs
  if (sched_getaffinity(0, sizeof(mask), reinterpret_cast<cpu_set_t*>(mask)) != 0) {
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? static_cast<int>(online) : 1;
  }
  int count = 0;
  for (unsigned long word : mask) count += __builtin_popcountl(word);
  return count > 0 ? count : 1;
}

/// The smallest of the above. Reads files anew each time.
inline int available_cpus() {
  int cpus = affinity_cpus();
  detail::lower(&cpus, cgroup_cpu_limit(""));
  return cpus;
}

}  // namespace cuvil
