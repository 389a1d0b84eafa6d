// The executor against programs that are wrong: whatever they say, only typed errors, no access outside.
#include <gtest/gtest.h>

#include <cstring>

#include "core/abi/hash.h"
#include "tests/runtime/program_builder.h"

// A program may ask for any amount of memory; under AddressSanitizer, too, that is an error and not the end.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}

namespace cuvil::testing {
namespace {

int32_t nothing(const void* const*, const int64_t*, int64_t, int64_t, void*) { return 0; }

cuvil_status make(const std::vector<uint8_t>& program, std::vector<const void*> constants, cuvil_model** model) {
  runtime::ProgramSource source;
  source.program = program.data();
  source.program_bytes = program.size();
  source.constants = constants.data();
  source.constant_count = constants.size();
  source.find = [](void*, const char*) -> cuvil_kernel_fn { return nothing; };
  return runtime::model_from_program(source, model);
}

/// Opens, and runs with inputs of the declared shapes if it opens. Kernels do nothing, host operators do their work.
bool try_program(const std::vector<uint8_t>& program, size_t constants) {
  alignas(64) static const char weights[16384] = {};
  cuvil_model* model = nullptr;
  const cuvil_status status = make(program, std::vector<const void*>(constants, weights), &model);
  EXPECT_TRUE(status >= CUVIL_OK && status <= CUVIL_TARGET_ERROR);
  if (status) return false;
  cuvil_context* context = nullptr;
  if (cuvil_context_create(model, 1, &context) == CUVIL_OK) {
    std::vector<std::vector<int64_t>> shapes;
    std::vector<std::vector<double>> data;
    std::vector<DLTensor> tensors(cuvil_input_count(model));
    std::vector<const DLTensor*> inputs;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const cuvil_tensor_info* info = cuvil_input_info(model, i);
      int64_t n = 1;
      shapes.emplace_back();
      for (int32_t k = 0; k < info->ndim; ++k) {
        shapes.back().push_back(info->dims[k] < 0 ? 3 : info->dims[k]);
        n *= std::min<int64_t>(shapes.back().back(), 1 << 16);
        n = std::min<int64_t>(n, 1 << 16);
      }
      data.emplace_back(static_cast<size_t>(n));
      // Shapes too large to hold are not run.
      int64_t elements = 1;
      for (int64_t d : shapes.back())
        if (d > 1 << 16 || (elements *= d) > 1 << 16) elements = 1 << 17;
      if (elements > 1 << 16) shapes.back().assign(shapes.back().size(), 0);
      tensors[i] = {};
      tensors[i].data = data.back().data();
      tensors[i].device = {kDLCPU, 0};
      tensors[i].ndim = info->ndim;
      const auto bits = static_cast<uint8_t>(8 * cuvil_dtype_size(info->dtype));
      tensors[i].dtype = {
          static_cast<uint8_t>(info->dtype == CUVIL_F32 || info->dtype == CUVIL_F64 ? kDLFloat : kDLInt), bits, 1};
      tensors[i].shape = shapes.back().data();
      inputs.push_back(&tensors[i]);
    }
    std::vector<DLManagedTensor*> outputs(cuvil_output_count(model));
    const cuvil_status ran = cuvil_run_alloc(context, inputs.data(), inputs.size(), outputs.data(), outputs.size());
    EXPECT_TRUE(ran >= CUVIL_OK && ran <= CUVIL_INTERNAL_ERROR);
    for (DLManagedTensor* t : outputs)
      if (t) t->deleter(t);
    cuvil_context_destroy(context);
  }
  cuvil_close(model);
  return true;
}

ProgramBuilder everything() {
  ProgramBuilder b;
  b.symbol("N", 0, 0);
  b.data_symbol("K", 2, "N 4 *");
  const uint32_t x = b.input("x", {"N", "4"}), y = b.output("y", {"2", "K"}, CUVIL_I64);
  const uint32_t z = b.output("z", {"N", "4"});
  const uint32_t a = b.arena("N 16 *", 0, 2), part = b.view(a, "16", "N 16 * -16 +");
  const uint32_t c = b.constant(std::vector<float>(1024));
  b.step("twice", {x, a}, {"N"}, {"N"}).scratch = b.size("64 N *");
  b.step("sum", {part, c, z}, {"N", "1"}, {"N", "4"});
  b.host("NonZero", {{a, {"N", "4"}, CUVIL_F32}}, {{y, {"2", "K"}, CUVIL_I64}}, {1});
  b.host("Copy", {{x, {"N", "4"}, CUVIL_F32}}, {{z, {"N", "4"}, CUVIL_F32}});
  return b;
}

TEST(Program, TheUntouchedOneRuns) {
  EXPECT_TRUE(try_program(artifact::pack(everything().program), 1)) << cuvil_last_error();
}

TEST(Program, FlippedBitsGiveTypedErrors) {
  const std::vector<uint8_t> good = artifact::pack(everything().program);
  uint32_t state = 3;
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<uint8_t> bad = good;
    for (int flips = 0; flips < 1 + i % 3; ++flips) {
      state = state * 1664525 + 1013904223;
      bad[(state >> 8) % bad.size()] ^= static_cast<uint8_t>(1 << (state >> 4 & 7));
    }
    accepted += try_program(bad, 1);
  }
  EXPECT_GT(accepted, 0);
}

TEST(Program, TruncatedGivesTypedErrors) {
  const std::vector<uint8_t> good = artifact::pack(everything().program);
  for (size_t n = 0; n < good.size(); ++n) try_program({good.begin(), good.begin() + static_cast<long>(n)}, 1);
}

void expect_refused(ProgramBuilder& b, const std::string& part) {
  cuvil_model* model = nullptr;
  alignas(64) static const char weights[16384] = {};
  EXPECT_EQ(make(artifact::pack(b.program), std::vector<const void*>(b.constants.size(), weights), &model),
            CUVIL_ARTIFACT_ERROR);
  EXPECT_NE(std::string(cuvil_last_error()).find(part), std::string::npos) << cuvil_last_error();
  cuvil_close(model);
}

TEST(Program, BrokenRulesAreNamed) {
  {
    ProgramBuilder b = example("4");
    b.program.steps[0]->arguments[0] = {77, cvl::kNone, cvl::kNone};
    expect_refused(b, "step 0 uses a buffer that does not exist");
  }
  {
    ProgramBuilder b = example("4");
    b.program.buffers[2]->last = 0;
    expect_refused(b, "step 1 uses buffer 2 outside its lifetime");
  }
  {
    ProgramBuilder b = example("4");
    b.program.buffers[3]->bytes = b.size("16388");
    expect_refused(b, "buffer 3 is larger than its constant");
  }
  {
    ProgramBuilder b = example("4");
    b.program.steps[1]->arguments[0] = {2, cvl::kNone, b.size("65")};
    expect_refused(b, "argument 0 of step 1 ('add_step') lies outside its buffer");
  }
  {
    ProgramBuilder b = example("4");
    b.program.buffers[1]->bytes = b.size("60");
    expect_refused(b, "output 'y' has 64 bytes, its buffer 60");
  }
  {
    ProgramBuilder b = example("4");
    b.view(2, "32", "40");
    expect_refused(b, "buffer 4 lies outside the buffer that it is a view of");
  }
  {
    ProgramBuilder b = example("4");
    b.program.steps[0]->tasks[0] = b.size("-1");
    expect_refused(b, "impossible number of tasks");
  }
  {
    ProgramBuilder b = example("4");
    b.size("1 0 /");
    expect_refused(b, "divides by zero");
  }
  {
    ProgramBuilder b = example("4");
    b.size("1 +");
    expect_refused(b, "is malformed");
  }
  {
    ProgramBuilder b = example("4");
    b.size("9223372036854775807 2 *");
    expect_refused(b, "does not fit in 64 bits");
  }
}

TEST(Program, UnknownHostOperatorsAskForANewerRuntime) {
  ProgramBuilder b;
  const uint32_t x = b.input("x", {"4"}), y = b.output("y", {"4"});
  b.host("Frobnicate", {{x, {"4"}, CUVIL_F32}}, {{y, {"4"}, CUVIL_F32}});
  cuvil_model* model;
  EXPECT_EQ(make(artifact::pack(b.program), {}, &model), CUVIL_UNSUPPORTED_ERROR);
  EXPECT_NE(std::string(cuvil_last_error()).find("'Frobnicate'"), std::string::npos);
}

/// y = x, or y = w where the condition is false.
void choose(ProgramBuilder& b) {
  const uint32_t c = b.input("c", {}, CUVIL_BOOL), x = b.input("x", {"3"}), w = b.input("w", {"3"});
  const uint32_t y = b.output("y", {"3"});
  b.jump(3, {{c, {}, CUVIL_BOOL}});
  b.host("Copy", {{x, {"3"}, CUVIL_F32}}, {{y, {"3"}, CUVIL_F32}});
  b.jump(4);
  b.host("Copy", {{w, {"3"}, CUVIL_F32}}, {{y, {"3"}, CUVIL_F32}});
}

TEST(Program, JumpsAreTakenWhereTheConditionIsFalse) {
  ProgramBuilder b;
  choose(b);
  TestModel m(b);
  ASSERT_EQ(m.status, CUVIL_OK) << m.error;
  cuvil_context* context;
  ASSERT_EQ(cuvil_context_create(m.model, 1, &context), CUVIL_OK);
  bool condition = true;
  float x[3] = {1, 2, 3}, w[3] = {4, 5, 6};
  int64_t three = 3;
  const auto tensor = [&](void* data, int32_t ndim, DLDataType type) {
    return DLTensor{data, {kDLCPU, 0}, ndim, type, &three, nullptr, 0};
  };
  const DLTensor c = tensor(&condition, 0, {kDLBool, 8, 1}), a = tensor(x, 1, {kDLFloat, 32, 1}),
                 e = tensor(w, 1, {kDLFloat, 32, 1});
  const DLTensor* inputs[] = {&c, &a, &e};
  for (const float* want : {x, w}) {
    DLManagedTensor* y = nullptr;
    ASSERT_EQ(cuvil_run_alloc(context, inputs, 3, &y, 1), CUVIL_OK) << cuvil_last_error();
    EXPECT_EQ(std::memcmp(y->dl_tensor.data, want, sizeof x), 0);
    y->deleter(y);
    condition = false;
  }
  cuvil_context_destroy(context);
}

TEST(Program, BrokenJumpsAreRefused) {
  const std::pair<const char*, std::function<void(ProgramBuilder&)>> breaks[] = {
      {"behind the end", [](ProgramBuilder& b) { b.program.steps[2]->target = 5; }},
      {"no bool", [](ProgramBuilder& b) { b.program.steps[0]->inputs[0]->dtype = CUVIL_U8; }},
      {"several bools", [](ProgramBuilder& b) { b.program.steps[0]->inputs[0]->dims = {b.size("3")}; }},
      {"no such buffer", [](ProgramBuilder& b) { b.program.steps[0]->inputs[0]->buffer = 99; }},
      {"a host operator too", [](ProgramBuilder& b) { b.program.steps[1]->target = 0; }},
      {"has a result", [](ProgramBuilder& b) { b.program.steps[0]->outputs.swap(b.program.steps[0]->inputs); }},
  };
  for (const auto& [name, apply] : breaks) {
    ProgramBuilder b;
    choose(b);
    apply(b);
    EXPECT_EQ(TestModel(b).status, CUVIL_ARTIFACT_ERROR) << name;
  }
}

TEST(Program, RequirementsAreCheckedAtRun) {
  ProgramBuilder b;
  b.symbol("N", 0, 0);
  b.symbol("M", 1, 0);
  const uint32_t x = b.input("x", {"N"});
  b.input("w", {"M"});
  const uint32_t y = b.output("y", {"N"});
  b.step("twice", {x, y}, {"N"}, {"N"});
  auto r = std::make_unique<cvl::RequirementT>();
  r->left = b.size("N");
  r->right = b.size("M");
  r->text = "Add: extents must match";
  b.program.requirements.push_back(std::move(r));
  TestModel m(b);
  ASSERT_EQ(m.status, CUVIL_OK) << m.error;
  cuvil_context* context;
  ASSERT_EQ(cuvil_context_create(m.model, 1, &context), CUVIL_OK);
  TestTensor one({5}), same({5}), other({6});
  const DLTensor* good[] = {one.get(), same.get()};
  const DLTensor* bad[] = {one.get(), other.get()};
  EXPECT_EQ(cuvil_prepare(context, good, 2), CUVIL_OK) << cuvil_last_error();
  EXPECT_EQ(cuvil_prepare(context, bad, 2), CUVIL_SHAPE_ERROR);
  EXPECT_STREQ(cuvil_last_error(), "Add: extents must match: 5 and 6 differ");
  cuvil_context_destroy(context);
}

TEST(Hash, MatchesTheSpecificationsVectors) {
  EXPECT_EQ(xxh64("", 0), 0xEF46DB3751D8E999u);
  EXPECT_EQ(xxh64("abc", 3), 0x44BC2CF5AD770999u);
  const char* text = "Nobody inspects the spammish repetition";
  EXPECT_EQ(xxh64(text, std::strlen(text)), 0xFBCEA83C8A378BF1u);
}

}  // namespace
}  // namespace cuvil::testing
