// Random kernels and the hand-written ones of tests/kernel/text: the CPU backend against the interpreter.
#include <cstdlib>

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
using kernel::testing::RandomKernel;

/// Compiled together, as the kernels of a model are.
void expect_as_interpreted(const std::vector<RandomKernel>& random, const Backend& backend, const TargetInfo& target) {
  std::vector<kernel::Kernel> kernels;
  for (const RandomKernel& r : random) kernels.push_back(r.kernel);
  const auto library = backend.load(kernels, target);
  for (const RandomKernel& r : random) {
    SCOPED_TRACE(r.kernel.name);
    const Interpreted expected = interpreted(r);
    Memory actual = expected.before;
    EXPECT_EQ(expected.code, run(*library, r.kernel, r.dims, actual));
    const std::string difference = expected.code == 0 ? first_difference(r.kernel, expected.after, actual) : "";
    EXPECT_EQ(difference, "") << kernel::print(r.kernel);
    if (!difference.empty()) return;
  }
}

TEST(RandomKernels, OnTheWidestAndTheNarrowestTargetAsInterpreted) {
  for (const std::string& target : widest_and_narrowest()) {
    SCOPED_TRACE(target);
    expect_as_interpreted(random_kernels(1, 30, {.halves = true}), cpu::backend(), TargetInfo::named(target));
  }
}

TEST(RandomKernels, WithTranscendentalsAsTheirExpansion) {
  const int count = std::getenv("CUVIL_TEST_FULL") ? 5000 : 60;
  for (int done = 0; done < count && !HasFailure(); done += 60) {
    const auto random =
        random_kernels(1000 + static_cast<uint64_t>(done), 60, {.halves = true, .transcendentals = true});
    EXPECT_GT(random.size(), 10u);
    expect_as_interpreted(random, cpu::backend(), TargetInfo::host());
  }
}

/// A vector of divisors that are 0 in lanes whose dividend is known.
TEST(RandomKernels, GuardsOfDivisionsStay) {
  expect_as_interpreted(random_kernels(4863, 1, {.halves = true, .transcendentals = true}), cpu::backend(),
                        TargetInfo::host());
}

TEST(RandomKernels, ThroughTheReferenceBackend) {
  expect_as_interpreted(random_kernels(2000, 20, {}), reference::backend(), TargetInfo::host());
}

TEST(WrittenKernels, AsInterpreted) {
  const std::pair<const char*, std::vector<int64_t>> kernels[] = {
      {"gemm_tile", {20, 9}},
      {"attention", {2, 19, 24}},
      {"attention_online", {2, 19, 32}},
      {"inverted_residual", {1, 1, 2, 7, 5, 3}},
      {"winograd_f43", {1, 1, 2, 9, 11}},
  };
  for (const std::string& target : widest_and_narrowest()) {
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
