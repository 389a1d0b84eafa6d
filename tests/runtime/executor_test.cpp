#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

#include "tests/runtime/program_builder.h"

namespace cuvil::testing {
namespace {

struct ContextHolder {
  explicit ContextHolder(cuvil_model* model, int threads = 2) {
    EXPECT_EQ(cuvil_context_create(model, threads, &context), CUVIL_OK) << cuvil_last_error();
  }
  ~ContextHolder() { cuvil_context_destroy(context); }
  cuvil_context* context = nullptr;
};

cuvil_status run(cuvil_context* context, std::vector<DLTensor*> in, std::vector<DLTensor*> out) {
  return cuvil_run(context, in.data(), in.size(), out.data(), out.size());
}

TestTensor counting(std::vector<int64_t> shape) {
  TestTensor t(std::move(shape));
  for (size_t i = 0; i < t.values.size(); ++i) t.values[i] = static_cast<float>(i) + 0.5f;
  return t;
}

void expect_example(const TestTensor& x, const float* y) {
  for (size_t i = 0; i < x.values.size(); ++i) ASSERT_EQ(y[i], 2 * x.values[i] + static_cast<float>(i)) << i;
}

TEST(Executor, RunsAStaticProgramIntoGivenOutputs) {
  ProgramBuilder b = example("100");
  TestModel m(b);
  ASSERT_EQ(m.status, CUVIL_OK) << m.error;
  ContextHolder c(m.model);
  TestTensor x = counting({100, 4}), y({100, 4});
  for (int i = 0; i < 3; ++i) {
    std::fill(y.values.begin(), y.values.end(), -1.0f);
    ASSERT_EQ(run(c.context, {x.get()}, {y.get()}), CUVIL_OK) << cuvil_last_error();
    expect_example(x, y.values.data());
  }
  cuvil_memory_info memory;
  ASSERT_EQ(cuvil_memory(c.context, &memory), CUVIL_OK);
  EXPECT_EQ(memory.arena_bytes, 1600);
  EXPECT_EQ(memory.arena_lower_bound, 1600);
  EXPECT_EQ(memory.weight_bytes, 16384);
}

TEST(Executor, DescribesInputsAndOutputs) {
  ProgramBuilder b = example("N");
  TestModel m(b);
  ASSERT_EQ(m.status, CUVIL_OK) << m.error;
  ASSERT_EQ(cuvil_input_count(m.model), 1u);
  const cuvil_tensor_info* x = cuvil_input_info(m.model, 0);
  EXPECT_STREQ(x->name, "x");
  EXPECT_EQ(x->dtype, CUVIL_F32);
  ASSERT_EQ(x->ndim, 2);
  EXPECT_EQ(x->dims[0], -1);
  EXPECT_EQ(x->dims[1], 4);
  EXPECT_STREQ(x->dim_texts[0], "N");
  EXPECT_EQ(cuvil_input_info(m.model, 1), nullptr);
  EXPECT_EQ(cuvil_output_info(m.model, 1), nullptr);
}

TEST(Executor, AllocatesOutputsThatOutliveEverything) {
  ProgramBuilder b = example("N");
  DLManagedTensor* y = nullptr;
  TestTensor x = counting({33, 4});
  {
    TestModel m(b);
    ContextHolder c(m.model);
    DLTensor* in = x.get();
    ASSERT_EQ(cuvil_run_alloc(c.context, &in, 1, &y, 1), CUVIL_OK) << cuvil_last_error();
  }
  ASSERT_NE(y, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(y->dl_tensor.data) % 64, 0u);
  ASSERT_EQ(y->dl_tensor.ndim, 2);
  EXPECT_EQ(y->dl_tensor.shape[0], 33);
  EXPECT_EQ(y->dl_tensor.shape[1], 4);
  expect_example(x, static_cast<const float*>(y->dl_tensor.data));
  y->deleter(y);
}

TEST(Executor, SymbolicShapesGrowShrinkAndReserve) {
  ProgramBuilder b = example("N");
  TestModel m(b);
  ContextHolder c(m.model);
  for (int64_t n : {1, 1000, 7, 0, 1000, 512}) {
    TestTensor x = counting({n, 4}), y({n, 4});
    ASSERT_EQ(run(c.context, {x.get()}, {y.get()}), CUVIL_OK) << cuvil_last_error();
    expect_example(x, y.values.data());
    ASSERT_EQ(cuvil_output_dims(c.context, 0)[0], n);
  }
  const int64_t shape[] = {1024, 4};
  const int64_t* shapes[] = {shape};
  ASSERT_EQ(cuvil_reserve(c.context, shapes, 1), CUVIL_OK) << cuvil_last_error();
  cuvil_memory_info memory;
  cuvil_memory(c.context, &memory);
  EXPECT_GE(memory.arena_reserved_bytes, 16384);
}

TEST(Executor, MemoryStaysThatOfTheLargestShape) {
  ProgramBuilder b = example("N");
  TestModel m(b);
  ContextHolder c(m.model);
  uint32_t state = 1;
  for (int i = 0; i < 1000; ++i) {
    state = state * 1664525 + 1013904223;
    const int64_t n = 1 + state % 1024;
    TestTensor x({n, 4}), y({n, 4});
    ASSERT_EQ(run(c.context, {x.get()}, {y.get()}), CUVIL_OK) << cuvil_last_error();
  }
  cuvil_memory_info memory;
  cuvil_memory(c.context, &memory);
  EXPECT_LE(memory.arena_reserved_bytes, 1024 * 16 + 4096);
  EXPECT_EQ(memory.cached_plans, 16);
}

TEST(Executor, PhasesAreSeparatedByABarrier) {
  ProgramBuilder b;
  b.symbol("N", 0, 0);
  const uint32_t x = b.input("x", {"N"}), y = b.output("y", {"1"});
  const uint32_t partial = b.arena("N 15 + 16 / 4 *", 0, 0);
  b.step("sum", {x, partial, y}, {"N 15 + 16 /", "1"}, {"N", "N 15 + 16 /"});
  TestModel m(b);
  ASSERT_EQ(m.status, CUVIL_OK) << m.error;
  ContextHolder c(m.model, 4);
  TestTensor in({5000}, std::vector<float>(5000, 1.0f)), out({1});
  for (int i = 0; i < 200; ++i) {
    out.values[0] = 0;
    ASSERT_EQ(run(c.context, {in.get()}, {out.get()}), CUVIL_OK) << cuvil_last_error();
    ASSERT_EQ(out.values[0], 5000.0f);
  }
}

TEST(Executor, ThreadsHaveScratchOfTheirOwn) {
  ProgramBuilder b;
  b.symbol("N", 0, 0);
  const uint32_t x = b.input("x", {"N"}), y = b.output("y", {"N"});
  (void)x;
  b.step("scratch", {y}, {"N"}, {}).scratch = b.size("256");
  TestModel m(b);
  ASSERT_EQ(m.status, CUVIL_OK) << m.error;
  ContextHolder c(m.model, 4);
  TestTensor in({3000}), out({3000});
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(run(c.context, {in.get()}, {out.get()}), CUVIL_OK) << cuvil_last_error();
    for (size_t k = 0; k < 3000; ++k) ASSERT_EQ(out.values[k], static_cast<float>(k));
  }
  cuvil_memory_info memory;
  cuvil_memory(c.context, &memory);
  EXPECT_EQ(memory.scratch_bytes_per_thread, 256);
}

TEST(Executor, StridedAndOverlappingInputsAreCopied) {
  ProgramBuilder b = example("5");
  TestModel m(b);
  ContextHolder c(m.model);
  TestTensor x = counting({5, 4}), y({5, 4});
  std::vector<float> transposed(20);
  for (size_t i = 0; i < 5; ++i)
    for (size_t k = 0; k < 4; ++k) transposed[k * 5 + i] = x.values[i * 4 + k];
  DLTensor strided = *x.get();
  int64_t strides[] = {1, 5};
  strided.data = transposed.data();
  strided.strides = strides;
  ASSERT_EQ(run(c.context, {&strided}, {y.get()}), CUVIL_OK) << cuvil_last_error();
  expect_example(x, y.values.data());
  cuvil_memory_info memory;
  cuvil_memory(c.context, &memory);
  EXPECT_GT(memory.staging_bytes, 0);

  // Reversed rows, by negative strides.
  TestTensor reversed({5, 4});
  for (size_t i = 0; i < 5; ++i)
    for (size_t k = 0; k < 4; ++k) reversed.values[(4 - i) * 4 + k] = x.values[i * 4 + k];
  DLTensor negative = *reversed.get();
  int64_t back[] = {-4, 1};
  negative.strides = back;
  negative.byte_offset = 16 * sizeof(float);
  ASSERT_EQ(run(c.context, {&negative}, {y.get()}), CUVIL_OK) << cuvil_last_error();
  expect_example(x, y.values.data());

  // An input that is also the output.
  TestTensor both = x;
  ASSERT_EQ(run(c.context, {both.get()}, {both.get()}), CUVIL_OK) << cuvil_last_error();
  expect_example(x, both.values.data());

  // Memory that is not even aligned to an element.
  std::vector<char> bytes(20 * 4 + 1);
  memcpy(bytes.data() + 1, x.values.data(), 80);
  DLTensor odd = *x.get();
  odd.data = bytes.data() + 1;
  ASSERT_EQ(run(c.context, {&odd}, {y.get()}), CUVIL_OK) << cuvil_last_error();
  expect_example(x, y.values.data());
}

TEST(Executor, ShapeErrorsNameInputAxisExpectedAndGot) {
  ProgramBuilder b = example("N");
  const uint32_t other = b.input("other", {"N 2 *", "3"});
  (void)other;
  TestModel m(b);
  ASSERT_EQ(m.status, CUVIL_OK) << m.error;
  ContextHolder c(m.model);
  TestTensor x({5, 4}), o({10, 3}), y({5, 4});
  ASSERT_EQ(run(c.context, {x.get(), o.get()}, {y.get()}), CUVIL_OK) << cuvil_last_error();
  const auto expect_error = [&](std::vector<DLTensor*> in, std::vector<DLTensor*> out, const std::string& part) {
    EXPECT_EQ(run(c.context, std::move(in), std::move(out)), CUVIL_SHAPE_ERROR);
    EXPECT_NE(std::string(cuvil_last_error()).find(part), std::string::npos) << cuvil_last_error();
  };
  TestTensor odd({11, 3}), wide({10, 5}), flat({20}), small({4, 4});
  expect_error({x.get(), odd.get()}, {y.get()},
               "'other': axis 0 is 11, expected N 2 * = 10 with N = 5 (axis 0 of 'x')");
  expect_error({x.get(), wide.get()}, {y.get()}, "'other': axis 1 is 5, expected 3");
  expect_error({flat.get(), o.get()}, {y.get()}, "'x' has 1 dimensions, expected 2");
  expect_error({x.get()}, {y.get()}, "1 inputs were given, the model has 2");
  expect_error({x.get(), o.get()}, {small.get()}, "output 'y': axis 0 is 4, expected 5");
  expect_error({nullptr, o.get()}, {y.get()}, "input 0 ('x') is missing");
  DLTensor ints = *x.get();
  ints.dtype = {kDLInt, 64, 1};
  expect_error({&ints, o.get()}, {y.get()}, "'x' has element type i64, expected f32");
  DLTensor gpu = *x.get();
  gpu.device = {kDLCUDA, 0};
  expect_error({&gpu, o.get()}, {y.get()}, "DLPack device type 2");
  // The context still works.
  EXPECT_EQ(run(c.context, {x.get(), o.get()}, {y.get()}), CUVIL_OK) << cuvil_last_error();
}

TEST(Executor, HugeShapesAreRefused) {
  ProgramBuilder b = example("N");
  TestModel m(b);
  ContextHolder c(m.model);
  for (int64_t n : {int64_t{1} << 40, int64_t{1} << 58, INT64_MAX}) {
    const int64_t shape[] = {n, 4};
    const int64_t* shapes[] = {shape};
    const cuvil_status status = cuvil_reserve(c.context, shapes, 1);
    EXPECT_TRUE(status == CUVIL_SHAPE_ERROR || status == CUVIL_TARGET_ERROR) << n;
  }
}

TEST(Executor, KernelErrorsNameTheStepAndItsLocation) {
  ProgramBuilder b;
  const uint32_t x = b.input("x", {"1"}), y = b.output("y", {"1"});
  b.step("check", {x, y}, {"1"}, {"10"}).location = 0;
  auto location = std::make_unique<cvl::LocationT>();
  location->file = "net.py";
  location->line = 12;
  location->function = "forward";
  location->variable = "h";
  b.program.locations.push_back(std::move(location));
  TestModel m(b);
  ASSERT_EQ(m.status, CUVIL_OK) << m.error;
  ContextHolder c(m.model);
  TestTensor good({1}, {3.0f}), bad({1}, {10.0f}), out({1});
  EXPECT_EQ(run(c.context, {good.get()}, {out.get()}), CUVIL_OK);
  EXPECT_EQ(run(c.context, {bad.get()}, {out.get()}), CUVIL_SHAPE_ERROR);
  EXPECT_STREQ(cuvil_last_error(), "an index is out of range in 'check_step' at net.py:12 in forward 'h'");
}

TEST(Executor, DataDependentShapesHaveAnUpperBound) {
  ProgramBuilder b;
  b.symbol("N", 0, 0);
  b.data_symbol("K", 0, "N 4 *");
  const uint32_t x = b.input("x", {"N", "4"}), y = b.output("y", {"2", "K"}, CUVIL_I64);
  const uint32_t z = b.output("z", {"2", "K"}, CUVIL_I64);
  b.host("NonZero", {{x, {"N", "4"}, CUVIL_F32}}, {{y, {"2", "K"}, CUVIL_I64}}, {1});
  b.host("Copy", {{y, {"2", "K"}, CUVIL_I64}}, {{z, {"2", "K"}, CUVIL_I64}});
  TestModel m(b);
  ASSERT_EQ(m.status, CUVIL_OK) << m.error;
  EXPECT_EQ(cuvil_output_info(m.model, 0)->dims[1], -1);
  ContextHolder c(m.model);
  TestTensor in({2, 4}, {0, 1, 0, -0.0f, 5, 0, 0, NAN});
  DLTensor* tensor = in.get();
  DLManagedTensor* out[2];
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(cuvil_run_alloc(c.context, &tensor, 1, out, 2), CUVIL_OK) << cuvil_last_error();
    for (DLManagedTensor* t : out) {
      ASSERT_EQ(t->dl_tensor.shape[1], 3);
      const auto* v = static_cast<const int64_t*>(t->dl_tensor.data);
      EXPECT_EQ(std::vector<int64_t>(v, v + 6), (std::vector<int64_t>{0, 1, 1, 1, 0, 3}));
      t->deleter(t);
    }
  }
  // The caller cannot know the shape ahead.
  TestTensor given({2, 3});
  DLTensor fixed = *given.get();
  std::vector<int64_t> room(16);
  int64_t shape[] = {2, 8};
  fixed.data = room.data();
  fixed.dtype = {kDLInt, 64, 1};
  fixed.shape = shape;
  EXPECT_EQ(run(c.context, {in.get()}, {&fixed, &fixed}), CUVIL_UNSUPPORTED_ERROR);
}

TEST(Executor, ProfileCountsRunsPerStep) {
  ProgramBuilder b = example("N");
  TestModel m(b);
  ContextHolder c(m.model);
  TestTensor x({5, 4}), y({5, 4});
  ASSERT_EQ(cuvil_profile_enable(c.context, 1), CUVIL_OK);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(run(c.context, {x.get()}, {y.get()}), CUVIL_OK);
  ASSERT_EQ(cuvil_step_count(c.context), 2u);
  cuvil_step_profile profile;
  ASSERT_EQ(cuvil_step(c.context, 1, &profile), CUVIL_OK);
  EXPECT_STREQ(profile.kernel, "add");
  EXPECT_EQ(profile.runs, 3);
  EXPECT_GE(profile.total_ns, profile.last_ns);
  EXPECT_NE(cuvil_step(c.context, 2, &profile), CUVIL_OK);
}

TEST(Executor, ManyThreadsWithAContextEach) {
  ProgramBuilder b = example("N");
  TestModel m(b);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 32; ++t)
    threads.emplace_back([&, t] {
      cuvil_context* context = nullptr;
      if (cuvil_context_create(m.model, 3, &context)) {
        ++wrong;
        return;
      }
      for (int64_t i = 0; i < 50; ++i) {
        const int64_t n = 1 + (t * 7 + i * 13) % 500;
        TestTensor x = counting({n, 4}), y({n, 4});
        DLTensor* in = x.get();
        DLTensor* out = y.get();
        if (cuvil_run(context, &in, 1, &out, 1)) ++wrong;
        for (size_t k = 0; k < x.values.size(); ++k) wrong += y.values[k] != 2 * x.values[k] + static_cast<float>(k);
      }
      cuvil_context_destroy(context);
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace cuvil::testing
