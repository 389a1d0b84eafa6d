// Code for aarch64, run by qemu on this machine, against the interpreter.
#include "tests/qemu/qemu.h"

#include "tests/backend_cpu/files.h"
#include "tests/backend_cpu/harness.h"

namespace cuvil::backends::testing {
namespace {

struct Job {
  kernel::Kernel kernel;
  std::vector<int64_t> dims;
  Interpreted expected;
};

/// Compiles all kernels into one shared object, runs it in one process of qemu.
void expect_as_interpreted_by_qemu(const std::vector<Job>& jobs, const std::string& target, const std::string& cpu) {
  if (!QemuProgram::available()) GTEST_SKIP() << "aarch64-linux-gnu-gcc or qemu-aarch64 was not found by CMake";
  std::vector<kernel::Kernel> kernels;
  std::vector<QemuJob> runs;
  for (const Job& job : jobs) {
    if (kernels.empty() || kernels.back().name != job.kernel.name) kernels.push_back(job.kernel);
    runs.push_back({&job.kernel, job.dims, {job.expected.before.begin(), job.expected.before.end()}});
  }
  const std::vector<QemuResult> results = QemuProgram(kernels, target, cpu).run(runs);
  for (size_t i = 0; i < jobs.size(); ++i) {
    const Job& job = jobs[i];
    EXPECT_EQ(results[i].code, job.expected.code);
    if (results[i].code == 0) {
      EXPECT_EQ(kernel::testing::first_difference(job.kernel, job.expected.after, results[i].memory), "")
          << kernel::print(job.kernel);
    }
  }
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
