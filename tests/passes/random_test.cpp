// Random graphs before and after the whole pipeline, by the interpreter; and that both are deterministic.
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/passes/evaluate.h"
#include "core/passes/run.h"
#include "tests/random/random_graph.h"
#include "tests/random/random_inputs.h"

namespace cuvil {
namespace {

void check(uint64_t seed, bool symbolic) {
  const TargetInfo target = TargetInfo::named(seed % 2 ? "x86-64-v3" : "x86-64-v4");
  const ir::Graph before = test::random_graph(seed, {12, symbolic});
  const ir::Graph after = passes::run_named(before.clone(), "all", {target, seed % 5 == 0}, true);
  const std::vector<ir::Tensor> inputs = test::random_inputs(before, seed);
  const auto wrong =
      test::difference(passes::evaluate(before, inputs, target), passes::evaluate(after, inputs, target), 2e-4);
  EXPECT_FALSE(wrong) << "seed " << seed << ": " << *wrong << "\n"
                      << ir::print(before, false) << ir::print(after, false);
}

/// A few, or the long suite of ./dev test --full.
uint64_t count() { return std::getenv("CUVIL_TEST_FULL") ? 1500 : 40; }

TEST(RandomGraphs, StaticShapes) {
  for (uint64_t seed = 1; seed <= count() && !testing::Test::HasFailure(); ++seed) check(seed, false);
}
TEST(RandomGraphs, SymbolicShapes) {
  for (uint64_t seed = 1; seed <= count() && !testing::Test::HasFailure(); ++seed) check(seed, true);
}
TEST(RandomGraphs, SameSeedSameText) {
  const TargetInfo target = TargetInfo::named("x86-64-v3");
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const auto text = [&] {
      return ir::print(passes::run_named(test::random_graph(seed), "all", {target}, false), true);
    };
    EXPECT_EQ(text(), text());
    EXPECT_EQ(text(), ir::print(ir::parse(text())));
  }
}

}  // namespace
}  // namespace cuvil
