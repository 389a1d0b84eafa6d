// The machine that code is generated for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cuvil {

enum class Arch : uint8_t { x86_64, aarch64 };

/// Everything a schedule may ask of a target. For targets with equal key() a kernel becomes the same code.
struct TargetInfo {
  Arch arch = Arch::x86_64;
  std::string name;           ///< what the user asked for: "host", "x86-64-v3", "x86-64-v4", "aarch64", ...
  std::string cpu;            ///< LLVM's -mcpu
  std::string llvm_features;  ///< LLVM's "+avx2,+fma,..." on top of cpu
  uint64_t features = 0;      ///< bits of cuvil_feature (core/abi/abi.h)
  int vector_bytes = 32;      ///< widest vector the code generator uses: 16, 32 or 64
  int vector_registers = 16;  ///< 16 or 32
  bool has_fma = true;
  bool has_masked_memory = true;  ///< predicated loads and stores are cheap (AVX-512; AVX2 through maskmov)
  int64_t l1_bytes = 32 << 10;
  int64_t l2_bytes = 512 << 10;
  int64_t l3_bytes = 8 << 20;
  int cores = 1;  ///< of the host that affinity and control groups leave to this process; 1 for a named target

  int lanes_f32() const { return vector_bytes / 4; }
  bool has(int feature) const { return (features >> feature) & 1; }
  /// Canonical text of all that changes the code generated for a kernel: part of the cache key.
  std::string key() const;

  /// The machine this process runs on (CPUID, HWCAP; cache sizes from sysfs with safe defaults).
  static TargetInfo host();
  /// A named target; throws TargetError that lists the names for an unknown one.
  static TargetInfo named(std::string_view name);
  static std::vector<std::string> names();
};

}  // namespace cuvil
