// What kernels mean: accesses, masks, phases, threads, and the errors that the interpreter finds.
#include "core/kernel/interpret.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/base/error.h"
#include "core/kernel/parse.h"
#include "tests/kernel/random_kernel.h"

namespace cuvil::kernel {
namespace {

/// Runs a kernel with parameters %a: f32[8] in and %c: f32[8] out; c starts as -1, a[i] = i + 1.
std::vector<float> run(const std::string& statements, const std::string& more = "") {
  const Kernel k =
      parse("kernel @k<%N>(%a: f32[%N] in, %c: f32[%N] inout" + more + ") { phase %t in 0 .. 1 {" + statements + "} }");
  std::vector<float> a(8), c(8, -1);
  for (size_t i = 0; i < 8; ++i) a[i] = static_cast<float>(i + 1);
  const Argument arguments[] = {{a.data(), 32}, {c.data(), 32}};
  const int64_t dims[] = {8};
  EXPECT_EQ(interpret(k, arguments, dims), 0);
  return c;
}
using Floats = std::vector<float>;
std::string error_of(const std::string& statements) {
  try {
    run(statements);
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), CUVIL_INTERNAL_ERROR);
    return e.what();
  }
  return "(no error)";
}
void expect_error(const std::string& statements, const std::string& part) {
  EXPECT_NE(error_of(statements).find(part), std::string::npos) << error_of(statements);
}

TEST(Interpret, MaskedLanesAreNotTouched) {
  EXPECT_EQ(run("%c[6 : 4 ? lane_mask(6, %N, 4)] = 5.0"), (Floats{-1, -1, -1, -1, -1, -1, 5, 5}));
  EXPECT_EQ(run("%c[0 : 8] = %a[4 : 8 ? lane_mask(4, %N, 8)]"), (Floats{5, 6, 7, 8, 0, 0, 0, 0}));
  EXPECT_EQ(run("%c[0] = %a[99 ? false]"), (Floats{0, -1, -1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(run("%c[99 : 4 ? false] = 1.0"), Floats(8, -1));
  // The first lane lies before the buffer and is masked off.
  EXPECT_EQ(run("%c[-1 : 4 ? ramp(0, 1, 4) > 0] = 2.0"), (Floats{2, 2, 2, -1, -1, -1, -1, -1}));
}

TEST(Interpret, GathersAndScatters) {
  EXPECT_EQ(run("%c[0 : 4] = %a[ramp(7, -2, 4)]"), (Floats{8, 6, 4, 2, -1, -1, -1, -1}));
  EXPECT_EQ(run("%c[ramp(1, 2, 4)] = %a[0 : 4]"), (Floats{-1, 1, -1, 2, -1, 3, -1, 4}));
  EXPECT_EQ(run("%c[broadcast(3, 4)] = %a[0 : 4]"), (Floats{-1, -1, -1, 4, -1, -1, -1, -1}));  // the last lane wins
  EXPECT_EQ(run("%c[0 : 4] = %a[ramp(6, 1, 4) ? ramp(6, 1, 4) < 8]"), (Floats{7, 8, 0, 0, -1, -1, -1, -1}));
}

TEST(Interpret, VectorsOfRegisters) {
  EXPECT_EQ(run("alloc %r: f32x4[2] reg %r[0] = %a[0 : 4] %r[1] = %r[0] * 2.0 %c[0 : 4] = %r[1] %c[4 : 4] = %r[0]"),
            (Floats{2, 4, 6, 8, 1, 2, 3, 4}));
  EXPECT_EQ(run("alloc %r: f32x4[1] reg %r[0] = 0.0 %r[0 ? lane_mask(0, 2, 4)] = 7.0 %c[0 : 4] = %r[0]"),
            (Floats{7, 7, 0, 0, -1, -1, -1, -1}));
}

TEST(Interpret, LoopsCountFromTheirBeginToTheirEnd) {
  EXPECT_EQ(run("for %i in 1 .. %N step 3 { %c[%i] = cast(f32, %i) }"), (Floats{-1, 1, -1, -1, 4, -1, -1, 7}));
  EXPECT_EQ(run("for %i in 3 .. 3 { %c[%i] = 0.0 }"), Floats(8, -1));
  EXPECT_EQ(run("for %i in 9223372036854775806 .. 9223372036854775807 step 5 { %c[0] = 0.0 }")[0], 0);
  EXPECT_EQ(run("for %i in 0 .. %N vector { %c[%i] = %a[%i] * %a[%i] }"), (Floats{1, 4, 9, 16, 25, 36, 49, 64}));
}

TEST(Interpret, ValuesOfOuterLoopsAreNotStale) {
  // What is hoisted out of the inner loop changes with the outer one; a let keeps its value after a store.
  EXPECT_EQ(
      run(R"(for %i in 0 .. 2 { for %j in 0 .. 4 { let %x = %a[%i * 4 + %j] %c[%i * 4 + %j] = cast(f32, %i * 4) + %x } })"),
      (Floats{1, 2, 3, 4, 9, 10, 11, 12}));
  EXPECT_EQ(run("let %x = %c[0] %c[0] = 5.0 %c[1] = %x if %x < 0.0 { %c[2] = %x + %c[0] } else { %c[3] = 1.0 }"),
            (Floats{5, -1, 4, -1, -1, -1, -1, -1}));
}

TEST(Interpret, LanesAndReductions) {
  EXPECT_EQ(run("%c[0] = reduce_add(%a[0 : 8]) %c[1] = reduce_max(%a[0 : 8]) %c[2] = reduce_min(%a[0 : 3]) "
                "%c[3] = lane(%a[0 : 8], 5) %c[4 : 4] = shuffle(%a[0 : 4], %a[4 : 4], [7, 0, 3, 4])"),
            (Floats{36, 8, 1, 6, 8, 1, 4, 5}));
  EXPECT_EQ(run("%c[0 : 2] = cast(f32, dot(broadcast(i32(10), 2), cast(u8, %a[0 : 8] + 250.0), broadcast(i8(-2), 8)))"),
            (Floats{10 - 2 * (251 + 252 + 253 + 254), 10 - 2 * (255 * 4), -1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(run("%c[0] = bitcast(f32, bitcast(i32, %a[2])) %c[1] = cast(f32, lane(bitcast(u8x16, %a[0 : 4]), 3))"),
            (Floats{3, 63, -1, -1, -1, -1, -1, -1}));
}

TEST(Interpret, FindsBadAccesses) {
  expect_error("%c[8] = 1.0", "kernel k, store to c: index 8 in dimension 0, whose extent is 8");
  expect_error("%c[0] = %a[-1]", "load of a: index -1");
  expect_error("%c[0 : 4] = %a[5 : 4]", "load of a: index 8");
  expect_error("%c[0 : 4] = %a[ramp(3, 3, 4)]", "index 9");
  expect_error("%c[6 : 4 ? lane_mask(6, 9, 4)] = 1.0", "store to c: index 8");
  expect_error("alloc %s: f32[4] scratch %s[0] = 1.0 %c[0] = %s[1]", "load of s: element 1 was never written");
  expect_error("alloc %r: f32x4[2] reg %r[0 ? lane_mask(0, 2, 4)] = 1.0 %c[0 : 4] = %r[0]", "load of r");
  // An alloc in a loop is new in each iteration.
  expect_error("for %i in 0 .. 2 { alloc %s: f32[1] scratch if %i == 0 { %s[0] = 1.0 } %c[0] = %s[0] }",
               "never written");
}

TEST(Interpret, PrefetchesOutsideAreNothing) { EXPECT_EQ(run("prefetch %a[1000] level 2"), Floats(8, -1)); }

TEST(Interpret, AVectorMayGoOnInTheNextRow) {
  const Kernel k =
      parse("kernel @k(%a: f32[2, 3] in, %c: f32[6] out) { phase %t in 0 .. 1 { %c[0 : 4] = %a[0, 1 : 4] } }");
  float a[6] = {0, 1, 2, 3, 4, 5}, c[6] = {};
  const Argument arguments[] = {{a, sizeof a}, {c, sizeof c}};
  EXPECT_EQ(interpret(k, arguments, {}), 0);
  EXPECT_EQ(c[3], 4);
  Kernel strided = parse(
      "kernel @k(%a: f32[2, 2] in strides [3, 1], %c: f32[6] out) { phase %t in 0 .. 1 { %c[0 : 4] = %a[0, 0 : 4] } }");
  EXPECT_THROW(interpret(strided, arguments, {}), Error);
}

TEST(Interpret, StridesAddressAndMemoryIsMeasured) {
  const Kernel k =
      parse("kernel @k(%a: f32[2, 3] in strides [1, 2], %c: f32[1] out) { phase %t in 0 .. 1 { %c[0] = %a[1, 2] } }");
  float a[6] = {0, 1, 2, 3, 4, 5}, c[1];
  Argument arguments[] = {{a, 24}, {c, 4}};
  EXPECT_EQ(interpret(k, arguments, {}), 0);
  EXPECT_EQ(c[0], 5);
  arguments[0].bytes = 20;
  EXPECT_THROW(interpret(k, arguments, {}), Error);
  EXPECT_THROW(interpret(k, std::span(arguments).first(1), {}), Error);
  const int64_t dims[] = {3};
  EXPECT_THROW(interpret(k, arguments, dims), Error);
}

TEST(Interpret, PhasesTasksAndFail) {
  const Kernel k = parse(R"(kernel @k<%N>(%w: f32[%N] work, %c: f32[%N] out) {
    phase %t in 0 .. %N { %w[%t] = cast(f32, %t) }
    phase %t in 0 .. %N { %c[%t] = %w[%N - 1 - %t] if %t == 3 { fail 42 } }
  })");
  std::vector<float> w(6), c(6, -1);
  const Argument arguments[] = {{w.data(), 24}, {c.data(), 24}};
  for (int64_t n : {3, 6}) {
    const int64_t dims[] = {n};
    EXPECT_EQ(interpret(k, arguments, dims), n == 6 ? 42 : 0);
  }
  EXPECT_EQ(c, (Floats{5, 4, 3, 2, -1, -1}));
  const Kernel early = parse("kernel @k(%w: f32[2] work, %c: f32[2] out) { phase %t in 0 .. 1 { %c[0] = %w[1] } }");
  EXPECT_THROW(interpret(early, arguments, {}), Error);
}

TEST(Interpret, TasksInPieces) {
  const Interpreter program(parse("kernel @k<%N>(%c: f32[%N] out) { phase %t in 0 .. %N { %c[%t] = cast(f32, %t) } }"));
  Floats c(4, -1);
  const void* buffers[] = {c.data()};
  const int64_t dims[] = {4};
  EXPECT_EQ(program.run_tasks(0, buffers, dims, 2, 4), 0);
  EXPECT_EQ(c, (Floats{-1, -1, 2, 3}));
}

TEST(Interpret, ThreadsMeetAtBarriers) {
  // A reduction by halves in shared memory: wrong unless all threads stop at every barrier.
  const Floats c = run(R"(
    alloc %s: f32[8] shared
    for %y in 0 .. 2 gpu_thread_y { for %x in 0 .. 4 gpu_thread_x {
      alloc %mine: f32[1] reg
      %mine[0] = %a[%y * 4 + %x]
      %s[%y * 4 + %x] = %mine[0]
      barrier
      for %k in 0 .. 3 {
        let %other = (%y * 4 + %x) ^ (4 >> %k)
        %mine[0] = %mine[0] + %s[%other]
        barrier
        %s[%y * 4 + %x] = %mine[0]
        barrier
      }
      %c[%y * 4 + %x] = %mine[0]
    } })");
  EXPECT_EQ(c, Floats(8, 36));
}

TEST(Interpret, RandomKernelsRunClean) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    testing::RandomKernel r = testing::random_kernel(seed, {.halves = true, .transcendentals = true});
    std::vector<Argument> arguments;
    for (auto& m : r.memory) arguments.push_back({m.data(), static_cast<int64_t>(m.size())});
    const auto before = r.memory;
    ASSERT_NO_THROW(EXPECT_EQ(interpret(r.kernel, arguments, r.dims), 0)) << "seed " << seed << "\n" << print(r.kernel);
    EXPECT_NE(r.memory, before) << "seed " << seed << " writes nothing";
    // The text means the same.
    testing::RandomKernel again = testing::random_kernel(seed, {.halves = true, .transcendentals = true});
    for (size_t i = 0; i < arguments.size(); ++i) arguments[i].data = again.memory[i].data();
    ASSERT_EQ(interpret(parse(print(r.kernel)), arguments, r.dims), 0);
    EXPECT_EQ(testing::first_difference(r.kernel, r.memory, again.memory), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace cuvil::kernel
