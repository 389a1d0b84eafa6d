#include "runtime/thread_count.h"

#include <atomic>
#include <cstdlib>

#include "core/abi/available_cpus.h"
#include "runtime/error.h"

namespace cuvil::runtime {

int default_threads() {
  static std::atomic<int> cached{0};
  int cpus = cached.load(std::memory_order_relaxed);
  if (cpus == 0) {
    cpus = available_cpus();
    if (cpus > kMaxThreads) cpus = kMaxThreads;
    cached.store(cpus, std::memory_order_relaxed);
  }
  return cpus;
}

cuvil_status choose_threads(int requested, int* threads) {
  if (requested < 0 || requested > kMaxThreads)
    return fail(CUVIL_UNSUPPORTED_ERROR, "num_threads is %d; give a number from 1 to %d, or 0 for the default",
                requested, kMaxThreads);
  *threads = requested > 0 ? requested : default_threads();
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
