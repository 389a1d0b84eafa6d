#include "runtime/thread_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "runtime/thread_count.h"

namespace cuvil::runtime {

namespace {

constexpr int kMaxTeams = 64;            // runs at the same time that get helpers; further ones run alone
constexpr int64_t kSpinNs = 100 * 1000;  // how long a thread looks for work before it sleeps
constexpr size_t kStackBytes = 1 << 20;
constexpr uint64_t kMaxUnits = (1 << 20) - 1;

/// The tasks of a phase that one thread of the team owns and others may steal: tag (24 bits) | begin (20) | end (20),
/// in units. The tag is the phase's number, so that a late thread cannot take work of a phase that it has not read.
struct alignas(64) Range {
  std::atomic<uint64_t> word;
};
constexpr uint64_t pack(uint32_t phase, uint64_t begin, uint64_t end) {
  return uint64_t{phase} << 40 | begin << 20 | end;
}

}  // namespace

struct alignas(64) Team {
  // Written by the caller once per phase, read by members. The other fields are read after `word`, and count only if
  // a unit was then taken: until all units are done the caller changes nothing.
  std::atomic<uint64_t> word;  // session (32) | phase (32)
  std::atomic<cuvil_kernel_fn> function;
  std::atomic<const void* const*> buffers;
  std::atomic<const int64_t*> dims;
  std::atomic<int64_t> tasks, tasks_per_unit;
  std::atomic<char*> scratch;
  alignas(64) std::atomic<size_t> scratch_stride;
  std::atomic<int> slots;

  alignas(64) std::atomic<uint32_t> pending;  // units not yet done
  std::atomic<uint32_t> caller_sleeps;
  std::atomic<int32_t> error;
  alignas(64) std::atomic<uint32_t> sleepers;  // members that may sleep

  bool called;  // of the caller alone: the members were woken for this run
  // Under the pool's lock.
  bool used;
  int members;
  uint16_t member[kMaxThreads];
  alignas(64) Range ranges[kMaxThreads];
};

namespace {

struct alignas(64) Worker {
  std::atomic<uint64_t> assignment;  // session (32) | team (16) | slot (16); 0 = none yet
  alignas(64) std::atomic<uint32_t> sleeping;
};

// Plain static memory: a thread may look at a team after its run has ended.
Team teams[kMaxTeams];
Worker workers[kMaxThreads];

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
// Under the lock.
int worker_count;
int idle_count;
uint16_t idle[kMaxThreads];  // the last is the one that worked last
int callers;                 // runs in progress
bool fork_handled;

void futex_wait(std::atomic<uint32_t>* word, uint32_t value) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void futex_wake(std::atomic<uint32_t>* word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  __asm__ volatile("yield");
#endif
}

int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * int64_t{1000000000} + t.tv_nsec;
}

/// Spins until `ready()`; false kSpinNs after *since, which is set to now if it is 0.
template <typename F>
bool spin_until(F&& ready, int64_t* since) {
  for (unsigned i = 0;; ++i) {
    if (ready()) return true;
    pause_cpu();
    if (i % 32 == 31) {
      const int64_t now = now_ns();
      if (*since == 0) *since = now;
      if (now - *since > kSpinNs) return false;
    }
  }
}

void wake(Worker& worker) {
  if (worker.sleeping.load() && worker.sleeping.exchange(0)) futex_wake(&worker.sleeping);
}

/// Sleeps until woken; returns at once if `ready()`. Whoever makes it ready does so before it calls wake().
template <typename F>
void sleep_until(Worker& me, F&& ready) {
  me.sleeping.store(1);
  if (!ready()) futex_wait(&me.sleeping, 1);
  me.sleeping.store(0);
}

/// Takes units of the phase, own ones from the front, others' from the back, always half of what is left: few calls,
/// and a slow thread loses what it has not begun.
bool participate(Team& team, int slot, uint32_t phase) {
  const auto relaxed = std::memory_order_relaxed;
  const cuvil_kernel_fn function = team.function.load(relaxed);
  const void* const* buffers = team.buffers.load(relaxed);
  const int64_t* dims = team.dims.load(relaxed);
  const int64_t tasks = team.tasks.load(relaxed), per_unit = team.tasks_per_unit.load(relaxed);
  char* scratch = team.scratch.load(relaxed) + static_cast<size_t>(slot) * team.scratch_stride.load(relaxed);
  const int slots = team.slots.load(relaxed);
  const uint64_t tag = pack(phase, 0, 0);
  uint32_t done = 0;
  for (int k = 0; k < slots; ++k) {
    const int victim = slot + k < slots ? slot + k : slot + k - slots;
    std::atomic<uint64_t>& word = team.ranges[victim].word;
    uint64_t seen = word.load();
    for (;;) {
      const uint64_t begin = seen >> 20 & kMaxUnits, end = seen & kMaxUnits;
      if (((seen ^ tag) >> 40) != 0 || begin >= end) break;
      const uint64_t take = (end - begin + 1) / 2;
      const uint64_t rest = k == 0 ? pack(phase, begin + take, end) : pack(phase, begin, end - take);
      if (!word.compare_exchange_weak(seen, rest)) continue;
      const auto first = static_cast<int64_t>(k == 0 ? begin : end - take) * per_unit;
      const int64_t last = first + static_cast<int64_t>(take) * per_unit;
      const int32_t code = function(buffers, dims, first, last < tasks ? last : tasks, scratch);
      if (code != 0) {
        int32_t none = 0;
        team.error.compare_exchange_strong(none, code);
      }
      done += static_cast<uint32_t>(take);
      seen = rest;
    }
  }
  if (done > 0 && team.pending.fetch_sub(done) == done && team.caller_sleeps.load()) futex_wake(&team.pending);
  return done > 0;
}

void serve(Worker& me, uint64_t assignment, int64_t* idle_since) {
  Team& team = teams[assignment >> 16 & 0xFFFF];
  const int slot = static_cast<int>(assignment & 0xFFFF);
  const uint64_t session = assignment >> 32;
  uint64_t seen = ~uint64_t{0};
  const auto changed = [&] { return team.word.load() != seen || me.assignment.load() != assignment; };
  for (;;) {
    const uint64_t word = team.word.load();
    if (word >> 32 != session) return;
    if (word != seen) {
      seen = word;
      if (participate(team, slot, static_cast<uint32_t>(word))) *idle_since = 0;
    }
    if (me.assignment.load() != assignment) return;
    if (!spin_until(changed, idle_since)) {
      team.sleepers.fetch_add(1);
      sleep_until(me, changed);
      team.sleepers.fetch_sub(1);
    }
  }
}

void* worker_main(void* argument) {
  Worker& me = *static_cast<Worker*>(argument);
  uint64_t assignment = 0;
  int64_t idle_since = 0;
  const auto assigned = [&] { return me.assignment.load() != assignment; };
  for (;;) {
    if (!spin_until(assigned, &idle_since)) sleep_until(me, assigned);
    const uint64_t next = me.assignment.load();
    if (next == assignment) continue;
    assignment = next;
    serve(me, assignment, &idle_since);
  }
}

void before_fork() { pthread_mutex_lock(&lock); }
void after_fork_parent() { pthread_mutex_unlock(&lock); }
/// The child has the forking thread alone: the pool starts anew.
void after_fork_child() {
  for (int i = 0; i < worker_count; ++i) {
    workers[i].assignment.store(0);
    workers[i].sleeping.store(0);
  }
  for (Team& team : teams) {
    team.used = false;
    team.sleepers.store(0);
    team.caller_sleeps.store(0);
  }
  worker_count = idle_count = callers = 0;
  pthread_mutex_init(&lock, nullptr);
}

void start_worker() {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  sigset_t all, old;  // signals are the program's business, not the pool's
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  pthread_t thread;
  workers[worker_count].assignment.store(0);
  const bool started = pthread_create(&thread, &attributes, worker_main, &workers[worker_count]) == 0;
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  pthread_attr_destroy(&attributes);
  if (!started) return;  // fewer threads: slower, not wrong
  char name[32];
  snprintf(name, sizeof(name), "cuvil-%d", worker_count + 1);
  pthread_setname_np(thread, name);
  idle[idle_count++] = static_cast<uint16_t>(worker_count++);
}

}  // namespace

Team* begin_team(int threads) {
  if (threads > kMaxThreads) threads = kMaxThreads;
  const int limit = threads > default_threads() ? threads : default_threads();
  pthread_mutex_lock(&lock);
  ++callers;
  int want = limit - callers - (worker_count - idle_count);
  if (want > threads - 1) want = threads - 1;
  Team* team = nullptr;
  int index = 0;
  if (want > 0) {
    if (!fork_handled) fork_handled = pthread_atfork(before_fork, after_fork_parent, after_fork_child) == 0;
    while (idle_count < want && worker_count < threads - 1) {
      const int before = worker_count;
      start_worker();
      if (worker_count == before) break;
    }
    if (want > idle_count) want = idle_count;
    while (index < kMaxTeams && teams[index].used) ++index;
    if (want > 0 && index < kMaxTeams) team = &teams[index];
  }
  if (team) {
    team->used = true;
    team->members = want;
    team->called = false;
    uint64_t session = ((team->word.load() >> 32) + 1) & 0xFFFFFFFF;
    if (session == 0) session = 1;
    team->word.store(session << 32 | (team->word.load() & 0xFFFFFFFF));
    for (int i = 0; i < want; ++i) {
      const uint16_t id = idle[--idle_count];
      team->member[i] = id;
      workers[id].assignment.store(session << 32 | static_cast<uint64_t>(index) << 16 | static_cast<uint64_t>(i + 1));
    }
  }
  pthread_mutex_unlock(&lock);
  return team;
}

void end_team(Team* team) {
  pthread_mutex_lock(&lock);
  --callers;
  if (team) {
    const uint64_t word = team->word.load();
    const uint64_t session = ((word >> 32) + 1) & 0xFFFFFFFF;
    team->word.store(session << 32 | (word & 0xFFFFFFFF));
    // The last taken goes back first, so that the next run gets the same threads in the same slots.
    for (int i = team->members; i-- > 0;) idle[idle_count++] = team->member[i];
    team->used = false;
  }
  pthread_mutex_unlock(&lock);
}

int32_t run_phase(Team* team, const Phase& phase) {
  if (phase.tasks <= 0) return 0;
  if (!team || phase.tasks == 1) return phase.function(phase.buffers, phase.dims, 0, phase.tasks, phase.scratch);

  const auto relaxed = std::memory_order_relaxed;
  const uint64_t word = team->word.load(relaxed);
  const uint32_t number = static_cast<uint32_t>(word) + 1;
  const int slots = team->members + 1;
  const auto tasks = static_cast<uint64_t>(phase.tasks);
  const uint64_t per_unit = (tasks + kMaxUnits - 1) / kMaxUnits;
  const uint64_t units = (tasks + per_unit - 1) / per_unit;
  team->function.store(phase.function, relaxed);
  team->buffers.store(phase.buffers, relaxed);
  team->dims.store(phase.dims, relaxed);
  team->tasks.store(phase.tasks, relaxed);
  team->tasks_per_unit.store(static_cast<int64_t>(per_unit), relaxed);
  team->scratch.store(phase.scratch, relaxed);
  team->scratch_stride.store(phase.scratch_stride, relaxed);
  team->slots.store(slots, relaxed);
  team->error.store(0, relaxed);
  team->pending.store(static_cast<uint32_t>(units), relaxed);
  for (int i = 0; i < slots; ++i) {
    const uint64_t begin = units * static_cast<uint64_t>(i) / static_cast<uint64_t>(slots);
    const uint64_t end = units * static_cast<uint64_t>(i + 1) / static_cast<uint64_t>(slots);
    team->ranges[i].word.store(pack(number, begin, end), std::memory_order_release);
  }
  team->word.store((word & ~uint64_t{0xFFFFFFFF}) | number);
  if (!team->called || team->sleepers.load() > 0)
    for (int i = 0; i < team->members; ++i) wake(workers[team->member[i]]);
  team->called = true;

  participate(*team, 0, number);
  const auto finished = [&] { return team->pending.load() == 0; };
  int64_t since = 0;
  if (!spin_until(finished, &since)) {
    team->caller_sleeps.store(1);
    for (uint32_t left; (left = team->pending.load()) != 0;) futex_wait(&team->pending, left);
    team->caller_sleeps.store(0);
  }
  return team->error.load();
}

int pool_size() {
  pthread_mutex_lock(&lock);
  const int size = worker_count;
  pthread_mutex_unlock(&lock);
  return size;
}

}  // namespace cuvil::runtime
