// Every schedule against the operator's own loop nest, both by the interpreter, for targets of each vector width.
#include <gtest/gtest.h>

#include "core/schedules/tile.h"
#include "tests/schedules/cases.h"

namespace cuvil::schedules::test {
namespace {

int32_t interpreted(const kernel::Kernel& kernel, std::span<const kernel::Argument> arguments,
                    std::span<const int64_t> dims) {
  return kernel::interpret(kernel, arguments, dims);
}

class EachSchedule : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(EachSchedule, ComputesWhatTheOperatorMeans) {
  const auto& [name, target_name] = GetParam();
  const Schedule* schedule = find(name);
  ASSERT_TRUE(schedule);
  const TargetInfo target = TargetInfo::named(target_name);
  for (const Case& c : cases_of(name)) {
    SCOPED_TRACE(c.name() + " on " + target_name);
    const Problem meant = plain(c), fast = laid_out(c, *schedule, target);
    const std::optional<std::string> refusal = schedule->refuse(fast.group(), target);
    ASSERT_FALSE(refusal) << *refusal;
    const auto inputs = random_inputs(c);
    const auto expected =
        run(meant, ops::lower_reference(meant.group(), target, "reference"), inputs, c.symbols, interpreted);
    const auto actual = run(fast, schedule->build(fast.group(), target, "fast"), inputs, c.symbols, interpreted);
    EXPECT_LT(difference(actual, expected), 1e-4);
  }
}

std::vector<std::string> with_cases() {
  std::vector<std::string> names;
  for (const Schedule& s : all())
    if (!cases_of(s.name).empty()) names.emplace_back(s.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Schedules, EachSchedule,
                         testing::Combine(testing::ValuesIn(with_cases()),
                                          testing::Values("x86-64-v3", "x86-64-v4", "aarch64")),
                         [](const auto& info) {
                           std::string name = std::get<0>(info.param) + "_" + std::get<1>(info.param);
                           for (char& c : name)
                             if (c == '-') c = '_';
                           return name;
                         });

TEST(ScheduleList, EveryScheduleIsTestedAndEndsWithTheReference) {
  EXPECT_EQ(all().back().name, "reference");
  for (const Schedule& s : all().first(all().size() - 1)) EXPECT_FALSE(cases_of(s.name).empty()) << s.name;
}

TEST(ScheduleList, ChoiceTellsWhyOthersWereRefused) {
  const TargetInfo target = TargetInfo::named("x86-64-v3");
  const Problem p = plain(matmul({4, 5}, {5, 6}));
  const Choice choice = choose(p.group(), target);
  ASSERT_TRUE(choice.schedule);
  EXPECT_EQ(choice.schedule->name, "matmul_batched");
  bool packed = false;
  for (const auto& [name, reason] : choice.refusals) {
    EXPECT_FALSE(reason.empty());
    packed = packed || (name == "matmul_packed" && reason.find("neither constant nor packed") != std::string::npos);
  }
  EXPECT_TRUE(packed);
}

TEST(Tiles, StayWithinTheRegisters) {
  for (const char* name : {"x86-64-v3", "x86-64-v4", "aarch64"}) {
    const TargetInfo target = TargetInfo::named(name);
    for (int64_t positions = 0; positions < 60; ++positions)
      for (int64_t vectors = 1; vectors < 40; ++vectors) {
        TileDemand demand;
        demand.positions = positions;
        demand.vectors = vectors;
        const TileChoice tile = choose_tile(demand, target);
        // Accumulators, weights and a broadcast.
        EXPECT_LE(tile.positions * tile.vectors + tile.vectors + 1, target.vector_registers)
            << positions << " x " << vectors << " on " << name;
        EXPECT_GT(tile.cycles, 0);
      }
  }
}

TEST(Tiles, FillTheRegistersWhereTheShapeAllows) {
  const TargetInfo target = TargetInfo::named("x86-64-v4");
  TileDemand demand;
  demand.positions = 56;
  demand.vectors = 4;
  const TileChoice tile = choose_tile(demand, target);
  EXPECT_EQ(tile.positions, 14);
  EXPECT_EQ(tile.vectors, 2);
}

}  // namespace
}  // namespace cuvil::schedules::test
