// The pool, thread counts, allocations, idle threads, fork, the shared library's size.
#include <elf.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/abi/available_cpus.h"
#include "runtime/thread_count.h"
#include "runtime/thread_pool.h"
#include "tests/runtime/program_builder.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifndef SANITIZED
// Counts the process's heap allocations. glibc's own entry points do the work.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}
static std::atomic<long> allocations{0};
extern "C" {
void* malloc(size_t n) {
  ++allocations;
  return __libc_malloc(n);
}
void* calloc(size_t n, size_t size) {
  ++allocations;
  return __libc_calloc(n, size);
}
void* realloc(void* p, size_t n) {
  ++allocations;
  return __libc_realloc(p, n);
}
int posix_memalign(void** p, size_t alignment, size_t n) {
  ++allocations;
  *p = __libc_memalign(alignment, n);
  return *p ? 0 : 12;
}
void* aligned_alloc(size_t alignment, size_t n) {
  ++allocations;
  return __libc_memalign(alignment, n);
}
}
#endif

namespace cuvil::testing {
namespace {

/// The example of 500 rows, ready to run on two threads.
struct Ready {
  ProgramBuilder builder = example("N");
  TestModel model{builder};
  cuvil_context* context = nullptr;
  TestTensor x{{500, 4}}, y{{500, 4}};
  Ready() { EXPECT_EQ(cuvil_context_create(model.model, 2, &context), CUVIL_OK) << cuvil_last_error(); }
  ~Ready() { cuvil_context_destroy(context); }
  bool run(int64_t rows = 500) {
    x.shape[0] = y.shape[0] = rows;
    DLTensor *in = x.get(), *out = y.get();
    return cuvil_run(context, &in, 1, &out, 1) == CUVIL_OK && y.values[3] == 2 * x.values[3] + 3;
  }
};

#ifndef SANITIZED
TEST(Runtime, AllocatesNothingAfterTheFirstRun) {
  Ready r;
  ASSERT_TRUE(r.run());
  const long before = allocations;
  bool right = true;
  for (int64_t i = 0; i < 100; ++i) right &= r.run(500 - i * 3);  // new shapes, too
  EXPECT_EQ(allocations - before, 0);
  EXPECT_TRUE(right);
}
#endif

TEST(Runtime, IdleThreadsSleep) {
  Ready r;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(r.run());
  const auto cpu = [] {
    rusage u;
    getrusage(RUSAGE_SELF, &u);
    return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
  };
  usleep(100 * 1000);
  const double before = cpu();
  usleep(1000 * 1000);
  EXPECT_LT(cpu() - before, 0.01) << "seconds of CPU in one second of doing nothing";
}

TEST(Runtime, AForkedChildHasAPoolOfItsOwn) {
  Ready r;
  ASSERT_TRUE(r.run());
  ASSERT_GE(runtime::pool_size(), 1);
  for (int round = 0; round < 10; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      bool right = runtime::pool_size() == 0;
      for (int i = 0; i < 20; ++i) right &= r.run();
      right &= runtime::pool_size() >= 1;
      _exit(right ? 0 : 1);
    }
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ASSERT_TRUE(r.run());
  }
}

TEST(Runtime, AContextInUseIsRefused) {
  Ready r;
  std::atomic<int> refused{0}, other{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      TestTensor x({500, 4}), y({500, 4});
      for (int i = 0; i < 200; ++i) {
        DLTensor *in = x.get(), *out = y.get();
        const cuvil_status status = cuvil_run(r.context, &in, 1, &out, 1);
        refused += status == CUVIL_UNSUPPORTED_ERROR;
        other += status != CUVIL_UNSUPPORTED_ERROR && status != CUVIL_OK;
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(other, 0);
}

// ---- the pool alone

std::atomic<int64_t> executed{0};
std::atomic<int64_t> number_sum{0};
int32_t count_tasks(const void* const*, const int64_t*, int64_t begin, int64_t end, void*) {
  executed += end - begin;
  for (int64_t i = begin; i < end; ++i) number_sum += i;
  return 0;
}
int32_t fail_task_77(const void* const*, const int64_t*, int64_t begin, int64_t end, void*) {
  return begin <= 77 && 77 < end ? 5 : 0;
}

TEST(Pool, EveryTaskRunsOnce) {
  for (int threads : {1, 2, 3, 8}) {
    runtime::Team* team = runtime::begin_team(threads);
    for (int64_t tasks : {0, 1, 2, 3, 7, 64, 1000, 100000}) {
      executed = number_sum = 0;
      EXPECT_EQ(runtime::run_phase(team, {count_tasks, nullptr, nullptr, tasks, nullptr, 0}), 0);
      EXPECT_EQ(executed, tasks);
      EXPECT_EQ(number_sum, tasks * (tasks - 1) / 2);
    }
    runtime::end_team(team);
  }
}

TEST(Pool, MoreTasksThanUnits) {
  runtime::Team* team = runtime::begin_team(2);
  executed = 0;
  const auto only_count = [](const void* const*, const int64_t*, int64_t begin, int64_t end, void*) -> int32_t {
    executed += end - begin;
    return 0;
  };
  const int64_t tasks = (int64_t{1} << 33) + 12345;
  EXPECT_EQ(runtime::run_phase(team, {only_count, nullptr, nullptr, tasks, nullptr, 0}), 0);
  EXPECT_EQ(executed, tasks);
  runtime::end_team(team);
}

TEST(Pool, ErrorsComeBack) {
  runtime::Team* team = runtime::begin_team(2);
  EXPECT_EQ(runtime::run_phase(team, {fail_task_77, nullptr, nullptr, 200, nullptr, 0}), 5);
  EXPECT_EQ(runtime::run_phase(team, {count_tasks, nullptr, nullptr, 200, nullptr, 0}), 0);
  runtime::end_team(team);
}

TEST(Pool, ManyCallersAtOnce) {
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 80; ++t)  // more than there are teams
    callers.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        std::atomic<int64_t> mine{0};
        const void* buffers[] = {&mine};
        const auto add = [](const void* const* b, const int64_t*, int64_t begin, int64_t end, void*) -> int32_t {
          *static_cast<std::atomic<int64_t>*>(const_cast<void*>(b[0])) += end - begin;
          return 0;
        };
        runtime::Team* team = runtime::begin_team(3);
        for (int64_t tasks : {5, 100}) runtime::run_phase(team, {add, buffers, nullptr, tasks, nullptr, 0});
        runtime::end_team(team);
        wrong += mine != 105;
      }
    });
  for (auto& t : callers) t.join();
  EXPECT_EQ(wrong, 0);
}

// ---- how many threads

TEST(ThreadCount, CpuLists) {
  EXPECT_EQ(count_cpu_list("0-3,8,10-11\n"), 7);
  EXPECT_EQ(count_cpu_list("0\n"), 1);
  EXPECT_EQ(count_cpu_list(""), 0);
  EXPECT_EQ(count_cpu_list("\n"), 0);
  EXPECT_EQ(count_cpu_list("3-1"), 0);
  EXPECT_EQ(count_cpu_list("a-b"), 0);
}

/// A folder that looks like / to the parsers.
class FakeRoot {
 public:
  FakeRoot() : root_(std::filesystem::temp_directory_path() / ("cuvil_cgroup_" + std::to_string(getpid()))) {}
  ~FakeRoot() { std::filesystem::remove_all(root_); }
  FakeRoot& file(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
    return *this;
  }
  int limit() const { return cgroup_cpu_limit(root_.c_str()); }

 private:
  std::filesystem::path root_;
};

TEST(ThreadCount, NoGroupsNoLimit) {
  FakeRoot root;
  EXPECT_EQ(root.limit(), 0);
  root.file("proc/self/cgroup", "0::/\n").file("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(root.limit(), 0);
}

TEST(ThreadCount, Version2QuotaOfTheGroupAndThoseAbove) {
  FakeRoot root;
  root.file("proc/self/cgroup", "0::/kube/pod/box\n")
      .file("sys/fs/cgroup/kube/cpu.max", "250000 100000\n")
      .file("sys/fs/cgroup/kube/pod/cpu.max", "max 100000\n")
      .file("sys/fs/cgroup/kube/pod/box/cpu.max", "400000 100000\n");
  EXPECT_EQ(root.limit(), 2);
  root.file("sys/fs/cgroup/kube/pod/box/cpu.max", "50000 100000\n");
  EXPECT_EQ(root.limit(), 1);
}

TEST(ThreadCount, Version2Cpuset) {
  FakeRoot root;
  root.file("proc/self/cgroup", "0::/box\n").file("sys/fs/cgroup/box/cpuset.cpus.effective", "0-1,4\n");
  EXPECT_EQ(root.limit(), 3);
}

TEST(ThreadCount, Version1) {
  FakeRoot root;
  root.file("proc/self/cgroup", "5:cpuset:/box\n3:cpu,cpuacct:/box\n1:name=systemd:/box\n")
      .file("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "300000\n")
      .file("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(root.limit(), 3);
  root.file("sys/fs/cgroup/cpuset/box/cpuset.cpus", "0,1\n");
  EXPECT_EQ(root.limit(), 2);
}

TEST(ThreadCount, Version1SeenFromInsideAContainer) {
  FakeRoot root;  // the group's path is the host's; the mount shows the container's own files at its top
  root.file("proc/self/cgroup", "3:cpu,cpuacct:/docker/1234\n")
      .file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n")
      .file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(root.limit(), 1);
}

TEST(ThreadCount, UnlimitedQuotaOfVersion1) {
  FakeRoot root;
  root.file("proc/self/cgroup", "3:cpu:/\n")
      .file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n")
      .file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(root.limit(), 0);
}

TEST(ThreadCount, TheVariableAndTheArgument) {
  int threads = 0;
  setenv("CUVIL_NUM_THREADS", "3", 1);
  EXPECT_EQ(runtime::choose_threads(0, &threads), CUVIL_OK);
  EXPECT_EQ(threads, 3);
  EXPECT_EQ(runtime::choose_threads(5, &threads), CUVIL_OK);
  EXPECT_EQ(threads, 5);
  setenv("CUVIL_NUM_THREADS", "many", 1);
  EXPECT_EQ(runtime::choose_threads(0, &threads), CUVIL_UNSUPPORTED_ERROR);
  unsetenv("CUVIL_NUM_THREADS");
  EXPECT_EQ(runtime::choose_threads(-1, &threads), CUVIL_UNSUPPORTED_ERROR);
  EXPECT_EQ(runtime::choose_threads(0, &threads), CUVIL_OK);
  EXPECT_GE(threads, 1);
}

// ---- the library

#ifndef SANITIZED
TEST(Library, NeedsOnlyTheCLibraryAndIsSmall) {
  const std::vector<uint8_t> file = read_bytes(RUNTIME_LIBRARY);
  ASSERT_GT(file.size(), sizeof(Elf64_Ehdr));
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(file.data());
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(file.data() + header->e_shoff);
  size_t loaded = 0;  // what stripping leaves, but for headers
  for (int i = 0; i < header->e_shnum; ++i) {
    const Elf64_Shdr& s = sections[i];
    if ((s.sh_flags & SHF_ALLOC) && s.sh_type != SHT_NOBITS) loaded += s.sh_size;
    if (s.sh_type != SHT_DYNAMIC) continue;
    const char* strings = reinterpret_cast<const char*>(file.data() + sections[s.sh_link].sh_offset);
    const auto* entries = reinterpret_cast<const Elf64_Dyn*>(file.data() + s.sh_offset);
    for (size_t k = 0; k < s.sh_size / sizeof(Elf64_Dyn); ++k) {
      if (entries[k].d_tag != DT_NEEDED) continue;
      const std::string name = strings + entries[k].d_un.d_val;
      const bool allowed = name.starts_with("libc.so") || name.starts_with("libm.so") ||
                           name.starts_with("libpthread.so") || name.starts_with("libdl.so") ||
                           name.starts_with("ld-linux");
      EXPECT_TRUE(allowed) << name;
    }
  }
#ifdef NDEBUG
  EXPECT_LT(loaded, 150u << 10);
#endif
  EXPECT_GT(loaded, 10u << 10);
}
#endif

}  // namespace
}  // namespace cuvil::testing
