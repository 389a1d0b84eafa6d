#include "core/backends/cpu/compile_kernels.h"

#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <numeric>
#include <thread>

#include "core/abi/available_cpus.h"
#include "core/backends/cpu/build_id.h"
#include "core/backends/cpu/canonical.h"
#include "core/backends/cpu/codegen.h"
#include "core/backends/cpu/object_cache.h"
#include "core/base/env.h"
#include "core/base/error.h"

namespace cuvil::backends::cpu {
namespace {

struct Job {
  const kernel::Kernel* kernel = nullptr;
  std::string text;  ///< canonical
  std::string key;   ///< of the cache
  bool from_cache = false;
  std::exception_ptr failure;
};

size_t thread_count(size_t jobs) {
  const int64_t asked = env::number("CUVIL_COMPILE_THREADS", 1, 1024).value_or(available_cpus());
  return std::min(static_cast<size_t>(asked), jobs);
}

/// Each job once, the largest first; a worker has a target machine of its own.
void run_jobs(std::vector<Job>& jobs, std::vector<CompiledKernels::Object>& objects, const TargetInfo& target,
              const ObjectCache& cache) {
  std::vector<size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return jobs[a].text.size() > jobs[b].text.size(); });
  std::atomic<size_t> next{0};
  auto work = [&] {
    std::unique_ptr<llvm::TargetMachine> machine;
    for (size_t i = next++; i < order.size(); i = next++) {
      Job& job = jobs[order[i]];
      CompiledKernels::Object& object = objects[order[i]];
      try {
        if (auto found = cache.find(job.key)) {
          object.bytes = std::move(*found);
          job.from_cache = true;
          continue;
        }
        if (!machine) machine = make_machine(target);
        object.bytes = compile_object(*job.kernel, object.symbol, target, *machine);
        cache.insert(job.key, object.bytes);
      } catch (...) {
        job.failure = std::current_exception();
      }
    }
  };
  std::vector<std::thread> workers;
  for (size_t i = 1; i < thread_count(jobs.size()); ++i) workers.emplace_back(work);
  work();
  for (std::thread& w : workers) w.join();
  for (const Job& job : jobs)
    if (job.failure) std::rethrow_exception(job.failure);
}

}  // namespace

CompiledKernels compile_kernels(std::span<const kernel::Kernel> kernels, const TargetInfo& target) {
  const auto start = std::chrono::steady_clock::now();
  CompiledKernels result;
  std::vector<Job> jobs;
  std::map<std::string, size_t> known;
  // All but the kernel that decides about the object.
  const std::string circumstances = target.key() + "\n" + llvm_version() + "\n" + kEmitterBuildId + "\n";
  for (const kernel::Kernel& k : kernels) {
    std::string text = canonical_text(k);
    const auto [at, is_new] = known.emplace(text, jobs.size());
    result.object_of.push_back(at->second);
    if (!is_new) continue;
    Job job{&k};
    job.key = circumstances + text;
    result.objects.push_back({"k" + ObjectCache::entry_name(text), {}});
    job.text = std::move(text);
    jobs.push_back(std::move(job));
  }
  if (!jobs.empty()) {
    const ObjectCache cache(ObjectCache::default_folder(), ObjectCache::default_most_bytes());
    run_jobs(jobs, result.objects, target, cache);
  }
  CompileStatistics& s = result.statistics;
  s.kernels = static_cast<int>(kernels.size());
  s.unique = static_cast<int>(jobs.size());
  for (const Job& job : jobs) s.from_cache += job.from_cache;
  for (const auto& object : result.objects) s.code_bytes += static_cast<int64_t>(object.bytes.size());
  s.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace cuvil::backends::cpu
