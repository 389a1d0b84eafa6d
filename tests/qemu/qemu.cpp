#include "tests/qemu/qemu.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/backends/cpu/cpu_backend.h"
#include "core/base/error.h"
#include "core/kernel/interpret.h"

namespace cuvil::backends::testing {
namespace {

#ifdef QEMU_RUNNER
constexpr const char *kQemu = QEMU, *kRunner = QEMU_RUNNER;
#else
constexpr const char *kQemu = nullptr, *kRunner = nullptr;
#endif

void put(std::string& file, int64_t n) { file.append(reinterpret_cast<const char*>(&n), sizeof(n)); }

void put(std::string& file, const QemuJob& job) {
  const kernel::Kernel& k = *job.kernel;
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
  put(file, static_cast<int64_t>(job.memory.size()));
  for (const auto& m : job.memory) {
    put(file, static_cast<int64_t>(m.size()));
    file.append(m.begin(), m.end());
  }
}

void write(const std::string& path, const void* data, size_t bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  if (!out.flush()) throw_internal("cannot write " + path);
}

}  // namespace

QemuProgram::QemuProgram(const std::span<const kernel::Kernel> kernels, const std::string& target, std::string cpu)
    : cpu_(std::move(cpu)) {
  std::string name = (std::filesystem::temp_directory_path() / "cuvil-qemu-XXXXXX").string();
  if (!mkdtemp(name.data())) throw_internal("no temporary folder");
  folder_ = name;
  const CodeObject code = cpu::backend().compile(kernels, TargetInfo::named(target));
  write(folder_ + "/code.so", code.shared_object.data(), code.shared_object.size());
}

QemuProgram::~QemuProgram() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

bool QemuProgram::available() { return kRunner != nullptr; }

std::vector<QemuResult> QemuProgram::run(const std::span<const QemuJob> jobs) const {
  CUVIL_CHECK(available(), "no qemu");
  std::string text;
  put(text, static_cast<int64_t>(jobs.size()));
  for (const QemuJob& job : jobs) put(text, job);
  const std::string in = folder_ + "/jobs", out = folder_ + "/results";
  write(in, text.data(), text.size());
  const std::string command = std::string(kQemu) + " -cpu " + cpu_ + " -L /usr/aarch64-linux-gnu " + kRunner + " " +
                              folder_ + "/code.so " + in + " " + out;
  if (const int status = std::system(command.c_str()))
    throw_internal("'" + command + "' ended with status " + std::to_string(status));
  std::ifstream stream(out, std::ios::binary);
  const std::string results{std::istreambuf_iterator<char>(stream), {}};
  size_t at = 0;
  const auto take = [&](void* to, size_t bytes) {
    if (at + bytes > results.size()) throw_internal("the results end too early");
    std::memcpy(to, results.data() + at, bytes);
    at += bytes;
  };
  std::vector<QemuResult> all;
  for (const QemuJob& job : jobs) {
    QemuResult& r = all.emplace_back();
    take(&r.code, sizeof(r.code));
    for (const auto& m : job.memory) {
      r.memory.emplace_back(m.size());
      take(r.memory.back().data(), m.size());
    }
  }
  return all;
}

}  // namespace cuvil::backends::testing
