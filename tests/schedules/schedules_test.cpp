// Every schedule against the operator's own loop nest, both by the interpreter, for targets of each vector width.
#include <gtest/gtest.h>

#include <cstring>

#include "core/backends/cpu/cpu_backend.h"
#include "core/schedules/tile.h"
#include "tests/qemu/qemu.h"
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

/// All kernels of a schedule for a target, to be compiled together, and what each must give.
struct Prepared {
  std::vector<Case> cases;
  std::vector<Problem> problems;
  std::vector<kernel::Kernel> kernels;

  Prepared(const std::string& name, const TargetInfo& target) : cases(cases_of(name)) {
    const Schedule* schedule = find(name);
    for (const Case& c : cases) {
      problems.push_back(laid_out(c, *schedule, target));
      kernels.push_back(schedule->build(problems.back().group(), target, "k" + std::to_string(kernels.size())));
    }
  }
  void expect_meaning(const TargetInfo& target, const Runner& runner) const {
    for (size_t i = 0; i < cases.size(); ++i) {
      SCOPED_TRACE(cases[i].name());
      const Problem meant = plain(cases[i]);
      const auto inputs = random_inputs(cases[i]);
      const auto expected =
          run(meant, ops::lower_reference(meant.group(), target, "reference"), inputs, cases[i].symbols, interpreted);
      EXPECT_LT(difference(run(problems[i], kernels[i], inputs, cases[i].symbols, runner), expected), 1e-4);
    }
  }
};

class NativeSchedule : public testing::TestWithParam<std::string> {};

TEST_P(NativeSchedule, ComputesWhatTheOperatorMeans) {
  const TargetInfo target = TargetInfo::host();
  const Prepared prepared(GetParam(), target);
  const auto library = backends::cpu::backend().load(prepared.kernels, target);
  prepared.expect_meaning(target, [&](const kernel::Kernel& kernel, std::span<const kernel::Argument> arguments,
                                      std::span<const int64_t> dims) {
    std::vector<const void*> buffers;
    for (const kernel::Argument& a : arguments) buffers.push_back(a.data);
    std::vector<std::pair<kernel::Var, int64_t>> values;
    for (size_t i = 0; i < dims.size(); ++i) values.emplace_back(kernel.dims[i], dims[i]);
    std::vector<float> scratch(static_cast<size_t>(*kernel::evaluate(kernel::scratch_bytes(kernel), values)) / 4 + 16);
    float* aligned = scratch.data();
    while (reinterpret_cast<uintptr_t>(aligned) % 64 != 0) ++aligned;
    for (size_t i = 0; i < kernel.phases.size(); ++i) {
      const cuvil_kernel_fn function = library->find(kernel.name + "_p" + std::to_string(i));
      if (!function) return int32_t{-1};
      const int64_t tasks = *kernel::evaluate(kernel.phases[i].tasks, values);
      // In two halves, as two threads would.
      for (const auto& [begin, end] : {std::pair{tasks / 2, tasks}, std::pair{int64_t{0}, tasks / 2}})
        if (const int32_t code = function(buffers.data(), dims.data(), begin, end, aligned)) return code;
    }
    return int32_t{0};
  });
}

/// The code for aarch64, run by qemu.
class QemuSchedule : public testing::TestWithParam<std::string> {};

TEST_P(QemuSchedule, ComputesWhatTheOperatorMeans) {
  using backends::testing::QemuProgram;
  if (!QemuProgram::available()) GTEST_SKIP() << "aarch64-linux-gnu-gcc or qemu-aarch64 was not found by CMake";
  const TargetInfo target = TargetInfo::named("aarch64");
  const Prepared prepared(GetParam(), target);
  const QemuProgram program(prepared.kernels, "aarch64", "cortex-a53");
  prepared.expect_meaning(target, [&](const kernel::Kernel& kernel, std::span<const kernel::Argument> arguments,
                                      std::span<const int64_t> dims) {
    backends::testing::QemuJob job{&kernel, {dims.begin(), dims.end()}, {}};
    for (const kernel::Argument& a : arguments)
      job.memory.push_back({static_cast<const unsigned char*>(a.data), static_cast<size_t>(a.bytes)});
    const auto results = program.run({&job, 1});
    for (size_t i = 0; i < arguments.size(); ++i)
      std::memcpy(arguments[i].data, results[0].memory[i].data(), results[0].memory[i].size());
    return static_cast<int32_t>(results[0].code);
  });
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

INSTANTIATE_TEST_SUITE_P(Schedules, NativeSchedule, testing::ValuesIn(with_cases()),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Schedules, QemuSchedule, testing::ValuesIn(with_cases()),
                         [](const auto& info) { return info.param; });

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
