// Code for aarch64, run by qemu on this machine, against the interpreter.
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/backends/cpu/cpu_backend.h"
#include "core/kernel/interpret.h"
#include "core/kernel/parse.h"
#include "tests/backend_cpu/files.h"
#include "tests/backend_cpu/harness.h"

namespace cuvil::backends::testing {
namespace {

struct Job {
  kernel::Kernel kernel;
  std::vector<int64_t> dims;
  Interpreted expected;
};

void put(std::string& file, int64_t n) { file.append(reinterpret_cast<const char*>(&n), sizeof(n)); }

void put(std::string& file, const Job& job) {
  const kernel::Kernel& k = job.kernel;
  std::vector<std::pair<kernel::Var, int64_t>> values;
  for (size_t i = 0; i < k.dims.size(); ++i) values.emplace_back(k.dims[i], job.dims[i]);
  put(file, static_cast<int64_t>(k.phases.size()));
  for (size_t p = 0; p < k.phases.size(); ++p) {
    char name[64] = {};
    (k.name + "_p" + std::to_string(p)).copy(name, sizeof(name) - 1);
    file.append(name, sizeof(name));
    put(file, *kernel::evaluate(k.phases[p].tasks, values));
  }
  put(file, static_cast<int64_t>(job.dims.size()));
  for (const int64_t d : job.dims) put(file, d);
  put(file, *kernel::evaluate(kernel::scratch_bytes(k), values));
  put(file, static_cast<int64_t>(job.expected.before.size()));
  for (const auto& m : job.expected.before) {
    put(file, static_cast<int64_t>(m.size()));
    file.append(m.begin(), m.end());
  }
}

/// Compiles all kernels into one shared object, runs it in one process of qemu.
void expect_as_interpreted_by_qemu(const std::vector<Job>& jobs, const std::string& target, const std::string& cpu) {
#ifndef QEMU_RUNNER
  GTEST_SKIP() << "aarch64-linux-gnu-gcc or qemu-aarch64 was not found when the tests were configured";
#else
  std::vector<kernel::Kernel> kernels;
  for (const Job& job : jobs)
    if (kernels.empty() || kernels.back().name != job.kernel.name) kernels.push_back(job.kernel);
  const CodeObject code = cpu::backend().compile(kernels, TargetInfo::named(target));
  const CacheFolder folder;
  const std::string so = folder.path() + "/code.so", in = folder.path() + "/jobs", out = folder.path() + "/results";
  write_file(so, code.shared_object.data(), code.shared_object.size());
  std::string text;
  put(text, static_cast<int64_t>(jobs.size()));
  for (const Job& job : jobs) put(text, job);
  write_file(in, text.data(), text.size());
  const std::string command = std::string(QEMU) + " -cpu " + cpu + " -L /usr/aarch64-linux-gnu " + QEMU_RUNNER + " " +
                              so + " " + in + " " + out;
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const std::string results = read_file(out);
  size_t at = 0;
  for (const Job& job : jobs) {
    int64_t returned = -1;
    ASSERT_LE(at + sizeof(returned), results.size());
    std::memcpy(&returned, results.data() + at, sizeof(returned));
    at += sizeof(returned);
    Memory actual;
    for (const auto& m : job.expected.after) {
      ASSERT_LE(at + m.size(), results.size());
      actual.emplace_back(results.begin() + static_cast<std::ptrdiff_t>(at),
                          results.begin() + static_cast<std::ptrdiff_t>(at + m.size()));
      at += m.size();
    }
    EXPECT_EQ(returned, job.expected.code);
    if (returned == 0) {
      EXPECT_EQ(kernel::testing::first_difference(job.kernel, job.expected.after, actual), "")
          << kernel::print(job.kernel);
    }
  }
#endif
}

std::vector<Job> jobs_of(const std::vector<Case>& cases) {
  std::vector<Job> jobs;
  for (const Case& c : cases)
    for (const auto& dims : c.dims) jobs.push_back({c.kernel, dims, interpreted(c.kernel, dims, 1)});
  return jobs;
}

class Qemu : public ::testing::TestWithParam<int> {};

TEST_P(Qemu, OperatorsAsInterpreted) {
  expect_as_interpreted_by_qemu(jobs_of(typed_cases(static_cast<DType>(GetParam()))), "aarch64", "cortex-a53");
}
INSTANTIATE_TEST_SUITE_P(Types, Qemu, ::testing::Range(0, kDTypeCount),
                         [](const auto& info) { return std::string(name_of(static_cast<DType>(info.param))); });

TEST(QemuOthers, AsInterpreted) { expect_as_interpreted_by_qemu(jobs_of(other_cases()), "aarch64", "cortex-a53"); }

TEST(QemuDotProducts, AsInterpreted) {
  expect_as_interpreted_by_qemu(jobs_of(other_cases()), "aarch64-dotprod", "cortex-a76");
}

TEST(QemuTiles, AsInterpreted) {
  std::vector<Case> cases;
  for (const char* name : {"gemm_14x2_avx512", "gemm_6x2_avx2", "gemm_8x3_neon"})
    cases.push_back({kernel_of_text(name), {{3, 17}}});
  expect_as_interpreted_by_qemu(jobs_of(cases), "aarch64", "cortex-a53");
}

TEST(QemuRandomKernels, AsInterpreted) {
  std::vector<Job> jobs;
  for (const auto& r : random_kernels(3000, 30, {.halves = true})) jobs.push_back({r.kernel, r.dims, interpreted(r)});
  expect_as_interpreted_by_qemu(jobs, "aarch64", "cortex-a53");
}

}  // namespace
}  // namespace cuvil::backends::testing
