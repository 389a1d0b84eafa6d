#include "runtime/thread_count.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/error.h"

namespace cuvil::runtime {

namespace {

/// Reads a small file into `text`, ends it with 0; false if it does not exist.
bool read_text(const char* path, char* text, size_t room) {
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

void lower(int* limit, int value) {
  if (value > 0 && (*limit == 0 || value < *limit)) *limit = value;
}

int whole_cpus(long long quota, long long period) {
  if (quota <= 0 || period <= 0) return 0;
  const long long cpus = quota / period;
  return cpus < 1 ? 1 : cpus > 1 << 20 ? 1 << 20 : static_cast<int>(cpus);
}

/// One group: `folder` is an absolute path. Files that are not there do not limit.
void read_group(const char* folder, int* limit) {
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
void read_groups(const char* mount, const char* group, int* limit) {
  char folder[1300];
  snprintf(folder, sizeof(folder), "%s%s", mount, group);
  for (size_t n = strlen(folder); n > strlen(mount); --n) {  // cut at every slash
    if (folder[n] != 0 && folder[n] != '/') continue;
    folder[n] = 0;
    read_group(folder, limit);
  }
  read_group(mount, limit);
}

bool has_word(const char* list, const char* word) {  // "cpu,cpuacct"
  const size_t n = strlen(word);
  for (const char* p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : nullptr)
    if (strncmp(p, word, n) == 0 && (p[n] == 0 || p[n] == ',')) return true;
  return false;
}

}  // namespace

int count_cpu_list(const char* text) {
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

int cgroup_cpu_limit(const char* root) {
  char path[512], mount[768], text[8192];
  snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
  if (!read_text(path, text, sizeof(text))) return 0;
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
          read_groups(mount, group, &limit);
        }
      }
      for (const char* name : {"cpu", "cpuset"}) {
        if (!has_word(controllers, name)) continue;
        snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/%s", root, name);
        read_groups(mount, group, &limit);
        if (strcmp(controllers, name) == 0) continue;
        snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/%s", root, controllers);
        read_groups(mount, group, &limit);
      }
    }
    line = next;
  }
  return limit;
}

int affinity_cpus() {
  unsigned long mask[256] = {};  // 16384 CPUs
  if (sched_getaffinity(0, sizeof(mask), reinterpret_cast<cpu_set_t*>(mask)) != 0) {
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? static_cast<int>(online) : 1;
  }
  int count = 0;
  for (unsigned long word : mask) count += __builtin_popcountl(word);
  return count > 0 ? count : 1;
}

int available_cpus() {
  static std::atomic<int> cached{0};
  int cpus = cached.load(std::memory_order_relaxed);
  if (cpus == 0) {
    cpus = affinity_cpus();
    lower(&cpus, cgroup_cpu_limit(""));
    if (cpus > kMaxThreads) cpus = kMaxThreads;
    cached.store(cpus, std::memory_order_relaxed);
  }
  return cpus;
}

cuvil_status choose_threads(int requested, int* threads) {
  if (requested < 0 || requested > kMaxThreads)
    return fail(CUVIL_UNSUPPORTED_ERROR, "num_threads is %d; give a number from 1 to %d, or 0 for the default",
                requested, kMaxThreads);
  *threads = requested > 0 ? requested : available_cpus();
  const char* text = getenv("CUVIL_NUM_THREADS");
  if (requested > 0 || !text || !*text) return CUVIL_OK;
  char* end;
  const long value = strtol(text, &end, 10);
  if (*end || value < 1 || value > kMaxThreads)
    return fail(CUVIL_UNSUPPORTED_ERROR, "CUVIL_NUM_THREADS is '%.40s'; give a number from 1 to %d", text, kMaxThreads);
  *threads = static_cast<int>(value);
  return CUVIL_OK;
}

}  // namespace cuvil::runtime
