// The worked example of docs/add_a_pass.md: this file includes the page's own text, cut out at build time.
#include <gtest/gtest.h>

#include "cancel_negations.inc"
#include "core/passes/run.h"

namespace cuvil {
namespace {

TEST(AddAPass, TheExampleWorks) {
  const TargetInfo target = TargetInfo::named("x86-64-v3");
  ir::Graph graph = passes::read(
      "graph @main(%x: f32[N]) -> (%c) { %a = Neg(%x) : f32[N] %b = Neg(%a) : f32[N] %c = Neg(%b) : f32[N] }", "");
  graph = passes::cancel_negations(std::move(graph), {target});
  EXPECT_EQ(ir::print(graph), "graph @main(%x: f32[N]) -> (%c) {\n  %c = Neg(%x) : f32[N]\n}\n");
}

}  // namespace
}  // namespace cuvil
