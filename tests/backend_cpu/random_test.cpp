// Random kernels and the hand-written ones of tests/kernel/text: the CPU backend against the interpreter.
#include "core/backends/cpu/cpu_backend.h"
#include "core/backends/cpu/inspect.h"
#include "core/backends/reference/reference_backend.h"
#include "core/kernel/interpret.h"
#include "core/kernel/parse.h"
#include "core/kernel/transform.h"
#include "tests/backend_cpu/harness.h"
#include "tests/kernel/kernel_texts.h"
#include "tests/kernel/random_kernel.h"

namespace cuvil::backends::testing {
namespace {

using kernel::testing::first_difference;
using kernel::testing::random_kernel;
using kernel::testing::RandomKernel;
using kernel::testing::RandomKernelOptions;

/// Compiled together, as the kernels of a model are. Transcendentals are exact against their own expansion.
void expect_random_as_interpreted(uint64_t first, uint64_t count, const RandomKernelOptions& options,
                                  const Backend& backend, const TargetInfo& target) {
  std::vector<RandomKernel> random;
  std::vector<kernel::Kernel> kernels;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    random.push_back(random_kernel(seed, options));
    random.back().kernel.name += "_" + std::to_string(seed);
    kernels.push_back(random.back().kernel);
  }
  const auto library = backend.load(kernels, target);
  for (size_t i = 0; i < random.size(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(first + i));
    const RandomKernel& r = random[i];
    Memory expected = r.memory, actual = r.memory;
    std::vector<kernel::Argument> arguments;
    for (auto& m : expected) arguments.push_back({m.data(), static_cast<int64_t>(m.size())});
    const int32_t code = kernel::interpret(kernel::expand_math(r.kernel), arguments, r.dims);
    EXPECT_EQ(code, run(*library, r.kernel, r.dims, actual));
    const std::string difference = code == 0 ? first_difference(r.kernel, expected, actual) : "";
    EXPECT_EQ(difference, "") << kernel::print(r.kernel);
    if (!difference.empty()) return;
  }
}

TEST(RandomKernels, OnEveryTargetAsInterpreted) {
  for (const std::string& target : runnable_targets()) {
    SCOPED_TRACE(target);
    expect_random_as_interpreted(1, 40, {.halves = true}, cpu::backend(), TargetInfo::named(target));
  }
}

TEST(RandomKernels, WithTranscendentalsAsTheirExpansion) {
  expect_random_as_interpreted(1000, 40, {.halves = true, .transcendentals = true}, cpu::backend(), TargetInfo::host());
}

TEST(RandomKernels, ThroughTheReferenceBackend) {
  expect_random_as_interpreted(2000, 20, {}, reference::backend(), TargetInfo::host());
}

TEST(WrittenKernels, AsInterpreted) {
  const std::pair<const char*, std::vector<int64_t>> kernels[] = {
      {"gemm_tile", {20, 9}},
      {"attention", {2, 19, 24}},
      {"attention_online", {2, 19, 32}},
      {"inverted_residual", {1, 1, 2, 7, 5, 3}},
      {"winograd_f43", {1, 1, 2, 9, 11}},
  };
  for (const std::string& target : runnable_targets()) {
    SCOPED_TRACE(target);
    for (const auto& [name, dims] : kernels) {
      const kernel::Kernel k = kernel::testing::kernel_from_text(name);
      const Interpreted expected = interpreted(kernel::expand_math(k), dims, 1);
      const auto library = cpu::backend().load({&k, 1}, TargetInfo::named(target));
      Memory actual = expected.before;
      EXPECT_EQ(run(*library, k, dims, actual), 0);
      EXPECT_TRUE(equal_memory(k, expected.after, actual));
    }
  }
}

}  // namespace
}  // namespace cuvil::backends::testing
