// Random graphs, compiled and run, against the interpreter node by node: passes, schedules, plan, code and runtime at
// once. CUVIL_TEST_FULL runs the long suite.
#include "tests/random/random_graph.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/driver/compiler.h"
#include "core/passes/evaluate.h"
#include "tests/driver/run_model.h"
#include "tests/random/random_inputs.h"

namespace cuvil {
namespace {

uint64_t count() { return std::getenv("CUVIL_TEST_FULL") ? 2500 : 100; }

/// Runs a graph; returns how many of its results only rounding explains.
int check(uint64_t seed, bool symbolic) {
  int excused = 0;
  const ir::Graph graph = test::random_graph(seed, {12, symbolic});
  driver::BuildOptions options;
  if (seed % 5 == 0) options.numerics = "strict";
  const auto executable = driver::build(graph, options);
  for (uint64_t round = 0; round < (symbolic ? 3U : 1U); ++round) {
    const std::vector<ir::Tensor> inputs = test::random_inputs(graph, seed * 7 + round);
    const auto expected = passes::evaluate(graph, inputs, TargetInfo::host());
    const auto actual = test::run_model(executable->model(), inputs, seed % 2 ? 1 : 2);
    auto wrong = test::difference(expected, actual, 2e-4);
    if (wrong) {
      // Rare: as much as inputs changed by rounding errors would change the interpreter's own results is no error.
      double own = 0;
      for (uint64_t i = 0; i < 4; ++i) {
        const auto nudged = passes::evaluate(graph, test::perturbed(inputs, seed + i), TargetInfo::host());
        own = std::max(own, test::distance(expected, nudged));
      }
      if (own < 1e-2) wrong = test::difference(expected, actual, 2e-4 + 4 * own);
      if (!wrong) ++excused;
    }
    EXPECT_FALSE(wrong) << "seed " << seed << (symbolic ? " symbolic" : " static") << " round " << round << ": "
                        << *wrong << "\n"
                        << ir::print(graph, false) << ir::print(executable->lowered().graph, false);
  }
  return excused;
}

void check_all(bool symbolic) {
  uint64_t excused = 0;
  for (uint64_t seed = 1; seed <= count() && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    excused += static_cast<uint64_t>(check(seed, symbolic));
  }
  EXPECT_LE(excused, 1 + count() / 100) << "so many ill-conditioned graphs are none: something lost precision";
}

TEST(CompiledRandomGraphs, StaticShapes) { check_all(false); }

TEST(CompiledRandomGraphs, SymbolicShapes) { check_all(true); }

}  // namespace
}  // namespace cuvil
