#include "tests/runtime/program_builder.h"

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "core/abi/cpu_features.h"

extern "C" {
#define KERNEL(name) int32_t name(const void* const*, const int64_t*, int64_t, int64_t, void*);
KERNEL(twice_p0)
KERNEL(add_p0)
KERNEL(sum_p0)
KERNEL(sum_p1)
KERNEL(scratch_p0)
KERNEL(check_p0)
#undef KERNEL
}

namespace cuvil::testing {

cuvil_kernel_fn find_test_kernel(void*, const char* symbol) {
  static const std::map<std::string, cuvil_kernel_fn> kernels = {{"twice_p0", twice_p0},     {"add_p0", add_p0},
                                                                 {"sum_p0", sum_p0},         {"sum_p1", sum_p1},
                                                                 {"scratch_p0", scratch_p0}, {"check_p0", check_p0}};
  auto it = kernels.find(symbol);
  return it == kernels.end() ? nullptr : it->second;
}

TestModel::TestModel(ProgramBuilder& builder) {
  const std::vector<uint8_t> bytes = artifact::pack(builder.program);
  for (const auto& c : builder.constants) {
    constants_.push_back(std::aligned_alloc(64, (c.size() + 63) / 64 * 64));
    std::memcpy(constants_.back(), c.data(), c.size());
  }
  runtime::ProgramSource source;
  source.program = bytes.data();
  source.program_bytes = bytes.size();
  source.constants = constants_.data();
  source.constant_count = constants_.size();
  source.find = find_test_kernel;
  status = runtime::model_from_program(source, &model);
  if (status) error = cuvil_last_error();
}

TestModel::~TestModel() {
  cuvil_close(model);
  for (void* c : constants_) std::free(c);
}

TestTensor::TestTensor(std::vector<int64_t> shape_, std::vector<float> values_)
    : shape(std::move(shape_)), values(std::move(values_)) {}
TestTensor::TestTensor(std::vector<int64_t> shape_) : shape(std::move(shape_)) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  values.resize(static_cast<size_t>(n));
}
DLTensor* TestTensor::get() {
  tensor.data = values.data();
  tensor.device = {kDLCPU, 0};
  tensor.ndim = static_cast<int32_t>(shape.size());
  tensor.dtype = {kDLFloat, 32, 1};
  tensor.shape = shape.data();
  return &tensor;
}

ProgramBuilder example(const std::string& n) {
  ProgramBuilder b;
  if (n == "N") b.symbol("N", 0, 0);
  const std::string elements = n + " 4 *", bytes = elements + " 4 *", tasks = elements + " 15 + 16 /";
  const uint32_t x = b.input("x", {n, "4"});
  const uint32_t y = b.output("y", {n, "4"});
  const uint32_t doubled = b.arena(bytes, 0, 1);
  std::vector<float> c(4096);
  for (size_t i = 0; i < c.size(); ++i) c[i] = static_cast<float>(i);
  const uint32_t constant = b.constant(c);
  b.step("twice", {x, doubled}, {tasks}, {elements});
  b.step("add", {doubled, constant, y}, {tasks}, {elements});
  return b;
}

std::vector<uint8_t> read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

artifact::File example_file(ProgramBuilder& builder, std::vector<uint8_t>& program) {
  program = artifact::pack(builder.program);
  artifact::File file;
  file.producer = "cuvil test";
  file.name = "example";
  file.metadata = {{"source", "by hand"}};
  artifact::Variant v;
  v.name = "plain";
  v.arch = host_arch();
  v.program = program;
  v.code = read_bytes(RUNTIME_TEST_KERNELS);
  for (const auto& c : builder.constants) v.constants.emplace_back(c);
  file.variants.push_back(std::move(v));
  return file;
}

}  // namespace cuvil::testing
