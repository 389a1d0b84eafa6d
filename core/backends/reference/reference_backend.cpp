#include "core/backends/reference/reference_backend.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <utility>

#include "core/base/error.h"
#include "core/kernel/interpret.h"

namespace cuvil::backends::reference {
namespace {

/// What a function pointer of the ABI stands for.
struct Slot {
  const kernel::Interpreter* interpreter = nullptr;
  size_t phase = 0;
  size_t dims = 0;
};

// A cuvil_kernel_fn carries no context, so each slot has a function of its own. This many phases can be loaded at a
// time, over all libraries.
constexpr size_t kSlots = 2048;
std::array<Slot, kSlots> slots;

int32_t run(size_t slot, const void* const* buffers, const int64_t* dims, int64_t begin, int64_t end) {
  try {
    const Slot& s = slots[slot];
    return s.interpreter->run_tasks(s.phase, buffers, {dims, s.dims}, begin, end);
  } catch (const std::exception& e) {  // the callers of kernels know no exceptions
    std::fprintf(stderr, "%s\n", e.what());
    return CUVIL_KERNEL_BROKEN;
  }
}

template <size_t slot>
int32_t entry(const void* const* buffers, const int64_t* dims, int64_t begin, int64_t end, void*) {
  return run(slot, buffers, dims, begin, end);
}
template <size_t... slot>
constexpr std::array<cuvil_kernel_fn, sizeof...(slot)> make_entries(std::index_sequence<slot...>) {
  return {entry<slot>...};
}
constexpr std::array<cuvil_kernel_fn, kSlots> kEntries = make_entries(std::make_index_sequence<kSlots>());

std::mutex slots_mutex;

class ReferenceLibrary final : public KernelLibrary {
 public:
  explicit ReferenceLibrary(std::span<const kernel::Kernel> kernels) {
    interpreters_.reserve(kernels.size());
    for (const kernel::Kernel& k : kernels) interpreters_.emplace_back(k);
    const std::lock_guard lock(slots_mutex);
    size_t slot = 0;
    for (size_t i = 0; i < kernels.size(); ++i) {
      for (size_t p = 0; p < kernels[i].phases.size(); ++p, ++slot) {
        while (slot < kSlots && slots[slot].interpreter) ++slot;
        if (slot == kSlots) {
          release();
          throw_unsupported("the reference backend can hold " + std::to_string(kSlots) +
                            " phases of kernels at a time");
        }
        slots[slot] = {&interpreters_[i], p, kernels[i].dims.size()};
        functions_[kernels[i].name + "_p" + std::to_string(p)] = slot;
      }
    }
  }
  ~ReferenceLibrary() override {
    const std::lock_guard lock(slots_mutex);
    release();
  }

  cuvil_kernel_fn find(std::string_view symbol) const override {
    const auto found = functions_.find(symbol);
    return found == functions_.end() ? nullptr : kEntries[found->second];
  }

 private:
  std::vector<kernel::Interpreter> interpreters_;
  std::map<std::string, size_t, std::less<>> functions_;

  void release() {
    for (const auto& [name, slot] : functions_) slots[slot] = {};
  }
};

class ReferenceBackend final : public Backend {
 public:
  std::string_view name() const override { return "reference"; }
  std::optional<std::string> refuse(const kernel::Kernel&, const TargetInfo&) const override { return {}; }

  std::unique_ptr<KernelLibrary> load(std::span<const kernel::Kernel> kernels, const TargetInfo&,
                                      CompileStatistics* statistics) const override {
    const auto start = std::chrono::steady_clock::now();
    auto library = std::make_unique<ReferenceLibrary>(kernels);
    if (statistics) {
      *statistics = {};
      statistics->kernels = statistics->unique = static_cast<int>(kernels.size());
      statistics->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    return library;
  }

  CodeObject compile(std::span<const kernel::Kernel>, const TargetInfo&) const override {
    throw_unsupported("the reference backend interprets kernels and has no code to save; use the cpu backend");
  }
};

}  // namespace

const Backend& backend() {
  static const ReferenceBackend the_backend;
  return the_backend;
}

}  // namespace cuvil::backends::reference
