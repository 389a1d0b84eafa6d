// Random kernels mean the same after every transform, to the bit where no sum is reordered.
#include <gtest/gtest.h>

#include "tests/kernel/random_kernel.h"
#include "tests/kernel_transform/equivalence.h"

namespace cuvil::kernel {
namespace {

using testing::RandomKernel;
using testing::RandomKernelOptions;

void expect_same_run(const RandomKernel& random, const Kernel& after, double tolerance) {
  SCOPED_TRACE(print(random.kernel) + "\n" + print(after));
  ASSERT_NO_THROW(verify(after));
  const auto run = [&](const Kernel& k, std::vector<std::vector<unsigned char>>& memory) {
    std::vector<Argument> arguments;
    for (auto& m : memory) arguments.push_back({m.data(), static_cast<int64_t>(m.size())});
    return interpret(k, arguments, random.dims);
  };
  auto a = random.memory, b = random.memory;
  int32_t x = 0, y = 0;
  ASSERT_NO_THROW(x = run(random.kernel, a));
  ASSERT_NO_THROW(y = run(after, b));
  EXPECT_EQ(x, y);
  if (x == 0) expect_equal_memory(random.kernel, a, b, tolerance);
}

class RandomKernels : public ::testing::TestWithParam<uint64_t> {};

TEST_P(RandomKernels, MeanTheSameAfterEveryTransform) {
  for (uint64_t seed = GetParam(); seed < GetParam() + 100; ++seed) {
    RandomKernelOptions options;
    options.halves = seed % 3 == 0;
    const RandomKernel r = random_kernel(seed, options);
    const Kernel simple = simplify(r.kernel);
    expect_same_run(r, simple, 0);
    expect_same_run(r, unroll_loops(r.kernel), 0);
    for (int bytes : {16, 64}) {
      const Kernel vectors = vectorize_loops(simplify(unroll_loops(r.kernel)), bytes);
      expect_same_run(r, vectors, 1e-5);
      expect_same_run(r, simplify(vectors), 1e-5);
    }
    if (HasFatalFailure() || HasNonfatalFailure()) FAIL() << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomKernels, ::testing::Values(0, 100));

}  // namespace
}  // namespace cuvil::kernel
