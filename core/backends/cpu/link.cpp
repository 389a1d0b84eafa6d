#include "core/backends/cpu/link.h"

#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <mutex>

#include "core/base/error.h"

LLD_HAS_DRIVER(elf)

namespace cuvil::backends::cpu {
namespace {

/// A private folder for lld's inputs and output; gone when done.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code problem;
    std::filesystem::path base = std::filesystem::temp_directory_path(problem);
    if (problem) base = "/tmp";
    std::string path = (base / "cuvil-link-XXXXXX").string();
    if (!::mkdtemp(path.data()))
      throw Error(CUVIL_ARTIFACT_ERROR, "no temporary folder can be made below " + base.string() + "; set TMPDIR");
    path_ = path;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

void write(const std::string& file, const void* data, size_t bytes) {
  std::ofstream out(file, std::ios::binary);
  out.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  if (!out.flush()) throw Error(CUVIL_ARTIFACT_ERROR, "cannot write " + file + "; set TMPDIR");
}

std::vector<uint8_t> read(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(in), {}};
  if (bytes.empty()) throw_internal("lld wrote no " + file);
  return bytes;
}

void run_lld(const std::vector<std::string>& arguments) {
  static std::mutex one_at_a_time;
  static bool usable = true;
  const std::lock_guard lock(one_at_a_time);
  CUVIL_CHECK(usable, "lld failed before in a way that it cannot recover from; restart the process");
  std::vector<const char*> argv;
  for (const std::string& a : arguments) argv.push_back(a.c_str());
  std::string messages;
  llvm::raw_string_ostream out(messages);
  const lld::Result r = lld::lldMain(argv, out, out, {{lld::Gnu, &lld::elf::link}});
  usable = r.canRunAgain;
  if (r.retCode != 0) throw_internal("linking kernels failed: " + messages.substr(0, 2000));
}

}  // namespace

std::vector<uint8_t> link_shared(std::span<const std::span<const uint8_t>> objects, std::span<const Export> exports,
                                 Arch arch) {
  const TemporaryFolder folder;
  std::vector<std::string> arguments = {"ld.lld",
                                        "-m",
                                        arch == Arch::aarch64 ? "aarch64linux" : "elf_x86_64",
                                        "-shared",
                                        "-o",
                                        folder.file("out.so"),
                                        "--no-undefined",
                                        "--hash-style=gnu",
                                        "--build-id=none",
                                        "--threads=1",
                                        "-z",
                                        "noexecstack",
                                        "-z",
                                        "now",
                                        "-soname",
                                        "cuvil_kernels"};
  std::string names = "{ global:\n", aliases;
  for (const Export& e : exports) {
    names += e.first + ";\n";
    aliases += e.first + " = " + e.second + ";\n";
  }
  names += "local: *; };\n";
  write(folder.file("exports.map"), names.data(), names.size());
  write(folder.file("aliases.ld"), aliases.data(), aliases.size());
  arguments.push_back("--version-script=" + folder.file("exports.map"));
  for (size_t i = 0; i < objects.size(); ++i) {
    arguments.push_back(folder.file(std::to_string(i) + ".o"));
    write(arguments.back(), objects[i].data(), objects[i].size());
  }
  arguments.push_back(folder.file("aliases.ld"));
  run_lld(arguments);
  return read(folder.file("out.so"));
}

}  // namespace cuvil::backends::cpu
