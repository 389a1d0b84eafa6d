// Shared objects, deduplication and the object cache.
#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <set>

#include "core/backends/cpu/canonical.h"
#include "core/backends/cpu/compile_kernels.h"
#include "core/backends/cpu/cpu_backend.h"
#include "core/backends/cpu/object_cache.h"
#include "core/base/error.h"
#include "core/kernel/interpret.h"
#include "tests/backend_cpu/elf_symbols.h"
#include "tests/backend_cpu/files.h"
#include "tests/backend_cpu/harness.h"

namespace cuvil::backends::testing {
namespace {

using kernel::Access;
using kernel::Buffer;
using kernel::Builder;
using kernel::Expr;

/// y = x * factor + 1 in two phases.
kernel::Kernel scale(const std::string& name, double factor, const std::string& variable = "i") {
  Builder b(name);
  const Expr n = b.dim("n");
  const Buffer x = b.param("x", {DType::f32}, {n}, Access::in), y = b.param("y", {DType::f32}, {n}, Access::out),
               work = b.param("work", {DType::f32}, {n}, Access::work);
  b.phase(1, [&](Expr) {
    b.loop(variable, n,
           [&](Expr i) { b.store(work, {i}, kernel::load(x, {i}) * kernel::const_float({DType::f32}, factor)); });
  });
  b.phase(n, [&](Expr t) { b.store(y, {t}, kernel::load(work, {t}) + kernel::const_float({DType::f32}, 1)); });
  return b.finish();
}

class LoadedObject final : public KernelLibrary {
 public:
  explicit LoadedObject(const std::string& file) : handle_(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (!handle_) throw_internal(::dlerror());
  }
  ~LoadedObject() override { ::dlclose(handle_); }
  cuvil_kernel_fn find(std::string_view symbol) const override {
    return reinterpret_cast<cuvil_kernel_fn>(::dlsym(handle_, std::string(symbol).c_str()));
  }

 private:
  void* handle_;
};

TEST(SharedObject, ExportsThePhasesAndImportsNothing) {
  const std::vector<kernel::Kernel> kernels = {scale("alpha", 2), scale("beta", 3), scale("gamma", 2)};
  for (const std::string target : {"x86-64-v3", "x86-64-v4", "x86-64-v4-vnni", "aarch64", "aarch64-dotprod"}) {
    SCOPED_TRACE(target);
    const CodeObject code = cpu::backend().compile(kernels, TargetInfo::named(target));
    const ElfSymbols symbols = elf_symbols(code.shared_object);
    const std::set<std::string> expected = {"alpha_p0", "alpha_p1", "beta_p0", "beta_p1", "gamma_p0", "gamma_p1"};
    EXPECT_EQ(symbols.exported, expected);
    EXPECT_TRUE(symbols.imported.empty()) << *symbols.imported.begin();
    EXPECT_TRUE(symbols.needed.empty());
    EXPECT_EQ(symbols.machine, target.starts_with("aarch64") ? EM_AARCH64 : EM_X86_64);
    EXPECT_EQ(code.statistics.kernels, 3);
    EXPECT_EQ(code.statistics.unique, 2);
  }
}

TEST(SharedObject, RunsLikeTheInterpreter) {
  const std::vector<kernel::Kernel> kernels = {scale("alpha", 2), scale("beta", 3), scale("gamma", 2)};
  const CodeObject code = cpu::backend().compile(kernels, TargetInfo::host());
  const CacheFolder folder;
  const std::string file = folder.path() + "/code.so";
  write_file(file, code.shared_object.data(), code.shared_object.size());
  const LoadedObject library(file);
  for (const kernel::Kernel& k : kernels) {
    const Interpreted expected = interpreted(k, {33}, 1);
    Memory actual = expected.before;
    EXPECT_EQ(run(library, k, {33}, actual), 0);
    EXPECT_TRUE(equal_memory(k, expected.after, actual));
  }
}

TEST(SharedObject, SameBytesEveryTime) {
  const std::vector<kernel::Kernel> kernels = {scale("alpha", 2), scale("beta", 3), scale("gamma", 5)};
  const TargetInfo target = TargetInfo::named("x86-64-v3");
  const auto first = cpu::backend().compile(kernels, target).shared_object;
  const std::vector<kernel::Kernel> again = {scale("alpha", 2), scale("beta", 3), scale("gamma", 5)};
  EXPECT_EQ(first, cpu::backend().compile(again, target).shared_object);
  EXPECT_EQ(std::string(first.begin(), first.end()).find("cuvil-link-"), std::string::npos) << "names a folder";
}

TEST(SharedObject, ForAnotherMachineIsNotLoaded) {
  const kernel::Kernel k = scale("alpha", 2);
  const bool arm = TargetInfo::host().arch == Arch::aarch64;
  try {
    cpu::backend().load({&k, 1}, TargetInfo::named(arm ? "x86-64-v3" : "aarch64"));
    FAIL() << "loaded";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), CUVIL_TARGET_ERROR);
  }
}

TEST(Equality, IgnoresNamesAndSeesConstants) {
  EXPECT_EQ(cpu::canonical_text(scale("alpha", 2)), cpu::canonical_text(scale("beta", 2, "other")));
  EXPECT_NE(cpu::canonical_text(scale("alpha", 2)), cpu::canonical_text(scale("alpha", 2.5)));
}

TEST(Threads, ANumberThatIsNoneIsRefused) {
  ::setenv("CUVIL_COMPILE_THREADS", "many", 1);
  const kernel::Kernel k = scale("alpha", 2);
  EXPECT_THROW(cpu::backend().load({&k, 1}, TargetInfo::host()), Error);
  ::unsetenv("CUVIL_COMPILE_THREADS");
}

class Cache : public ::testing::Test {
 protected:
  CacheFolder folder_;
  std::vector<kernel::Kernel> kernels_ = {scale("alpha", 2), scale("beta", 3), scale("gamma", 2)};
  TargetInfo target_ = TargetInfo::host();

  int from_cache() { return cpu::compile_kernels(kernels_, target_).statistics.from_cache; }
  std::vector<std::filesystem::path> entries() const {
    std::vector<std::filesystem::path> all;
    for (const auto& e : std::filesystem::directory_iterator(folder_.path() + "/objects")) all.push_back(e.path());
    std::sort(all.begin(), all.end());
    return all;
  }
};

TEST_F(Cache, IsHitTheSecondTime) {
  EXPECT_EQ(from_cache(), 0);
  EXPECT_EQ(entries().size(), 2u);
  const auto fresh = cpu::compile_kernels(kernels_, target_);
  EXPECT_EQ(fresh.statistics.from_cache, 2);
  kernels_.push_back(scale("delta", 7));
  EXPECT_EQ(from_cache(), 2);
  EXPECT_EQ(entries().size(), 3u);
}

TEST_F(Cache, OtherTargetsMiss) {
  EXPECT_EQ(from_cache(), 0);
  target_ = TargetInfo::named("aarch64");
  EXPECT_EQ(from_cache(), 0);
  EXPECT_EQ(from_cache(), 2);
}

TEST_F(Cache, DamagedEntriesAreReplaced) {
  const auto fresh = cpu::compile_kernels(kernels_, target_);
  for (const auto& file : entries()) {
    std::string bytes = read_file(file);
    bytes[bytes.size() / 2] ^= 1;
    write_file(file, bytes.data(), bytes.size());
  }
  EXPECT_EQ(from_cache(), 0);
  EXPECT_EQ(from_cache(), 2) << "and were written again";
  for (const auto& file : entries()) std::filesystem::resize_file(file, 20);
  EXPECT_EQ(from_cache(), 0);
  for (const auto& file : entries()) {
    std::filesystem::remove(file);
    std::filesystem::create_directory(file);
  }
  const auto without = cpu::compile_kernels(kernels_, target_);
  EXPECT_EQ(without.objects[0].bytes, fresh.objects[0].bytes);
}

TEST_F(Cache, AFolderOpenToOthersIsNotUsed) {
  std::filesystem::create_directory(folder_.path() + "/objects");
  ::chmod((folder_.path() + "/objects").c_str(), 0777);
  EXPECT_EQ(from_cache(), 0);
  EXPECT_EQ(from_cache(), 0);
  EXPECT_TRUE(entries().empty());
}

TEST_F(Cache, ANewFolderIsPrivate) {
  from_cache();
  struct stat s{};
  ASSERT_EQ(::stat((folder_.path() + "/objects").c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0700u);
}

TEST_F(Cache, AKeyNeverAnswersForAnother) {
  const cpu::ObjectCache cache(folder_.path() + "/own");
  ASSERT_TRUE(cache.enabled());
  cache.insert("one", {1, 2, 3});
  EXPECT_EQ(cache.find("one"), (std::vector<uint8_t>{1, 2, 3}));
  EXPECT_FALSE(cache.find("two").has_value());
  // The name of another key's entry does not help.
  std::filesystem::copy_file(folder_.path() + "/own/" + cpu::ObjectCache::entry_name("one"),
                             folder_.path() + "/own/" + cpu::ObjectCache::entry_name("two"));
  EXPECT_FALSE(cache.find("two").has_value());
}

TEST_F(Cache, ABoundRemovesWhatIsUnusedForLongest) {
  const std::string folder = folder_.path() + "/bounded";
  const std::vector<uint8_t> object(1000);
  const auto file = [&](const char* key) { return folder + "/" + cpu::ObjectCache::entry_name(key); };
  const auto used_hours_ago = [](const std::string& path, int hours) {
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  const cpu::ObjectCache cache(folder, 4500);
  for (const char* key : {"a", "b", "c", "d"}) cache.insert(key, object);
  used_hours_ago(file("a"), 4), used_hours_ago(file("b"), 3), used_hours_ago(file("c"), 2),
      used_hours_ago(file("d"), 1);
  write_file(folder + "/.new-1-1", object.data(), object.size());  // of a process that was killed
  used_hours_ago(folder + "/.new-1-1", 9);
  ASSERT_TRUE(cache.find("a").has_value()) << "which makes it the one used last";
  cache.insert("e", object);
  EXPECT_FALSE(std::filesystem::exists(folder + "/.new-1-1"));
  EXPECT_TRUE(cache.find("a").has_value());
  EXPECT_FALSE(cache.find("b").has_value());
  EXPECT_FALSE(cache.find("c").has_value());
  EXPECT_TRUE(cache.find("d").has_value());
  EXPECT_TRUE(cache.find("e").has_value());

  // Another process counts what is there already.
  const cpu::ObjectCache other(folder, 4500);
  other.insert("f", object);
  EXPECT_TRUE(other.find("d").has_value()) << "there was room";
}

TEST_F(Cache, ABoundThatIsNoNumberIsRefused) {
  ::setenv("CUVIL_CACHE_MB", "0", 1);
  EXPECT_THROW(cpu::compile_kernels(kernels_, target_), Error);
  ::unsetenv("CUVIL_CACHE_MB");
}

}  // namespace
}  // namespace cuvil::backends::testing
