#include "core/base/target_info.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "core/abi/available_cpus.h"
#include "core/abi/cpu_features.h"
#include "core/base/error.h"

namespace cuvil {
namespace {

constexpr uint64_t kAvx2 = feature_bit(CUVIL_FEATURE_AVX2), kAvx512 = kAvx2 | feature_bit(CUVIL_FEATURE_AVX512),
                   kVnni = kAvx512 | feature_bit(CUVIL_FEATURE_VNNI), kNeon = feature_bit(CUVIL_FEATURE_NEON),
                   kDotprod = kNeon | feature_bit(CUVIL_FEATURE_DOTPROD);

struct NamedTarget {
  std::string_view name;
  Arch arch;
  uint64_t features;
};
constexpr NamedTarget kTargets[] = {
    {"x86-64-v3", Arch::x86_64, kAvx2},           {"x86-64-v4", Arch::x86_64, kAvx512},
    {"x86-64-v4-vnni", Arch::x86_64, kVnni},      {"aarch64", Arch::aarch64, kNeon},
    {"aarch64-dotprod", Arch::aarch64, kDotprod},
};

/// What LLVM calls the features; the basic ones are part of the cpu's name.
struct FeatureName {
  cuvil_feature feature;
  std::string_view llvm;
};
constexpr FeatureName kFeatureNames[] = {
    {CUVIL_FEATURE_VNNI, "+avx512vnni"},
    {CUVIL_FEATURE_AVX512_FP16, "+avx512fp16"},
    {CUVIL_FEATURE_AVX512_BF16, "+avx512bf16"},
    {CUVIL_FEATURE_DOTPROD, "+dotprod"},
    {CUVIL_FEATURE_I8MM, "+i8mm"},
    {CUVIL_FEATURE_FP16, "+fullfp16"},
    {CUVIL_FEATURE_BF16, "+bf16"},
};

TargetInfo from_features(Arch arch, uint64_t features) {
  TargetInfo t;
  t.arch = arch;
  t.features = features;
  for (const FeatureName& f : kFeatureNames)
    if (t.has(f.feature)) t.llvm_features += (t.llvm_features.empty() ? "" : ",") + std::string(f.llvm);
  if (arch == Arch::aarch64) {
    t.cpu = "generic";
    // Atomics and the like must never become calls into a library.
    t.llvm_features = "+neon,-outline-atomics" + (t.llvm_features.empty() ? "" : "," + t.llvm_features);
    t.vector_bytes = 16;
    t.vector_registers = 32;
    t.has_masked_memory = false;
    t.l1_bytes = 32 << 10;
    t.l2_bytes = 512 << 10;
    t.l3_bytes = 2 << 20;
    return t;
  }
  const bool wide = t.has(CUVIL_FEATURE_AVX512);
  t.cpu = wide ? "x86-64-v4" : "x86-64-v3";
  t.vector_bytes = wide ? 64 : 32;
  t.vector_registers = wide ? 32 : 16;
  t.l2_bytes = wide ? 1 << 20 : 256 << 10;
  return t;
}

/// "48K" or "2048K" or "300M"; 0 if it is none of these.
int64_t parse_size(const std::string& text) {
  char* end = nullptr;
  const int64_t n = std::strtoll(text.c_str(), &end, 10);
  if (n <= 0 || n > (int64_t{1} << 40)) return 0;
  return *end == 'K' ? n << 10 : *end == 'M' ? n << 20 : n;
}

std::string first_line(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

/// Data caches of the first CPU, as Linux reports them (Documentation/ABI/testing/sysfs-devices-system-cpu); levels
/// that it does not report keep their default.
void read_cache_sizes(TargetInfo& t) {
  for (int i = 0; i < 8; ++i) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    const std::string level = first_line(folder + "level"), type = first_line(folder + "type");
    const int64_t bytes = parse_size(first_line(folder + "size"));
    if (bytes == 0 || type == "Instruction") continue;
    if (level == "1") t.l1_bytes = bytes;
    if (level == "2") t.l2_bytes = bytes;
    if (level == "3") t.l3_bytes = bytes;
  }
}

[[noreturn]] void throw_target_error(const std::string& message) { throw Error(CUVIL_TARGET_ERROR, message); }

}  // namespace

std::string TargetInfo::key() const {
  return std::string(arch == Arch::aarch64 ? "aarch64" : "x86_64") + " " + cpu + " " + llvm_features + " v" +
         std::to_string(vector_bytes) + "x" + std::to_string(vector_registers) + (has_fma ? " fma" : "") +
         (has_masked_memory ? " masks" : "");
}

TargetInfo TargetInfo::host() {
  const uint64_t features = host_features();
  const bool arm = host_arch() == CUVIL_ARCH_AARCH64;
  if (!arm && !(features & kAvx2))
    throw_target_error("this processor has no AVX2 and FMA (x86-64-v3), the least that code is generated for");
  TargetInfo t = from_features(arm ? Arch::aarch64 : Arch::x86_64, features | (arm ? kNeon : 0));
  t.name = "host";
  read_cache_sizes(t);
  t.cores = available_cpus();
  return t;
}

TargetInfo TargetInfo::named(std::string_view name) {
  if (name == "host") return host();
  for (const NamedTarget& n : kTargets) {
    if (n.name != name) continue;
    TargetInfo t = from_features(n.arch, n.features);
    t.name = n.name;
    return t;
  }
  std::string known;
  for (const std::string& n : names()) known += (known.empty() ? "" : ", ") + n;
  throw_target_error("unknown target '" + std::string(name) + "'; known are " + known);
}

std::vector<std::string> TargetInfo::names() {
  std::vector<std::string> all = {"host"};
  for (const NamedTarget& n : kTargets) all.emplace_back(n.name);
  return all;
}

}  // namespace cuvil
