// What the processor of this process can do, as bits of cuvil_feature. Header-only: compiler and runtime both ask.
#pragma once

#include <cstdint>

#include "core/abi/abi.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace cuvil {

inline constexpr uint64_t feature_bit(cuvil_feature f) { return uint64_t{1} << f; }

/// Instruction set of this process.
inline constexpr cuvil_arch host_arch() {
#if defined(__aarch64__)
  return CUVIL_ARCH_AARCH64;
#else
  return CUVIL_ARCH_X86_64;
#endif
}

/// Features that the processor has and the operating system saves. Source: Intel SDM vol. 1 ch. 13-15 (CPUID, XCR0);
/// Linux Documentation/arm64/elf_hwcaps.rst (HWCAP bits).
inline uint64_t host_features() {
  uint64_t features = 0;
#if defined(__x86_64__)
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
  const bool fma = c >> 12 & 1, osxsave = c >> 27 & 1, avx = c >> 28 & 1, f16c = c >> 29 & 1, movbe = c >> 22 & 1;
  if (!osxsave || !avx) return 0;
  unsigned xcr0, high;
  __asm__ volatile("xgetbv" : "=a"(xcr0), "=d"(high) : "c"(0));
  if ((xcr0 & 0x6) != 0x6) return 0;  // XMM and YMM state
  unsigned b7 = 0, c7 = 0, d7 = 0, a71 = 0, ignored, lzcnt = 0;
  if (!__get_cpuid_count(7, 0, &a, &b7, &c7, &d7)) return 0;
  const unsigned subleaves = a;
  if (__get_cpuid(0x80000001, &a, &b, &c, &d)) lzcnt = c >> 5 & 1;
  if (subleaves >= 1 && !__get_cpuid_count(7, 1, &a71, &ignored, &ignored, &ignored)) a71 = 0;
  const bool avx2 = b7 >> 5 & 1, bmi1 = b7 >> 3 & 1, bmi2 = b7 >> 8 & 1;
  if (!(avx2 && bmi1 && bmi2 && fma && f16c && movbe && lzcnt)) return 0;
  features |= feature_bit(CUVIL_FEATURE_AVX2);
  const bool f = b7 >> 16 & 1, dq = b7 >> 17 & 1, cd = b7 >> 28 & 1, bw = b7 >> 30 & 1, vl = b7 >> 31 & 1;
  if ((xcr0 & 0xE0) != 0xE0 || !(f && dq && cd && bw && vl)) return features;  // opmask and ZMM state
  features |= feature_bit(CUVIL_FEATURE_AVX512);
  if (c7 >> 11 & 1) features |= feature_bit(CUVIL_FEATURE_VNNI);
  if (d7 >> 23 & 1) features |= feature_bit(CUVIL_FEATURE_AVX512_FP16);
  if (a71 >> 5 & 1) features |= feature_bit(CUVIL_FEATURE_AVX512_BF16);
#elif defined(__aarch64__)
  const unsigned long cap = getauxval(AT_HWCAP), cap2 = getauxval(AT_HWCAP2);
  if (cap >> 1 & 1) features |= feature_bit(CUVIL_FEATURE_NEON);
  if (cap >> 10 & 1) features |= feature_bit(CUVIL_FEATURE_FP16);
  if (cap >> 20 & 1) features |= feature_bit(CUVIL_FEATURE_DOTPROD);
  if (cap >> 22 & 1) features |= feature_bit(CUVIL_FEATURE_SVE);
  if (cap2 >> 13 & 1) features |= feature_bit(CUVIL_FEATURE_I8MM);
  if (cap2 >> 14 & 1) features |= feature_bit(CUVIL_FEATURE_BF16);
#endif
  return features;
}

}  // namespace cuvil
