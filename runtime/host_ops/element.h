// Comparing elements of any type.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/abi/abi.h"

namespace cuvil::runtime {

/// f16 and bf16 as float.
inline float widen(uint16_t bits, bool brain) {
  uint32_t wide;
  if (brain) {
    wide = uint32_t{bits} << 16;
  } else {
    const uint32_t sign = (bits & 0x8000u) << 16, exponent = (bits >> 10) & 31u, fraction = bits & 0x3FFu;
    if (exponent == 0) {  // zero or denormal: fraction * 2^-24
      const float value = static_cast<float>(fraction) * 0x1p-24f;
      return sign ? -value : value;
    }
    wide = sign | (exponent == 31 ? 0x7F800000u : (exponent + 112) << 23) | fraction << 13;
  }
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

template <typename T>
int compare_values(const void* a, const void* b) {
  T x, y;
  memcpy(&x, a, sizeof x);
  memcpy(&y, b, sizeof y);
  if (x != x || y != y) return (x != x) - (y != y);  // NaN is above everything, as in numpy's sort
  return (x > y) - (x < y);
}
template <bool kBrain>
int compare_narrow(const void* a, const void* b) {
  uint16_t x, y;
  memcpy(&x, a, sizeof x);
  memcpy(&y, b, sizeof y);
  const float u = widen(x, kBrain), v = widen(y, kBrain);
  return compare_values<float>(&u, &v);
}

/// Less than, equal to or greater than zero; elements need not be aligned.
using Compare = int (*)(const void* a, const void* b);
inline Compare compare_function(cuvil_dtype dtype) {
  switch (dtype) {
    case CUVIL_F32:
      return compare_values<float>;
    case CUVIL_F64:
      return compare_values<double>;
    case CUVIL_F16:
      return compare_narrow<false>;
    case CUVIL_BF16:
      return compare_narrow<true>;
    case CUVIL_I64:
      return compare_values<int64_t>;
    case CUVIL_I32:
      return compare_values<int32_t>;
    case CUVIL_I16:
      return compare_values<int16_t>;
    case CUVIL_I8:
      return compare_values<int8_t>;
    case CUVIL_U64:
      return compare_values<uint64_t>;
    case CUVIL_U32:
      return compare_values<uint32_t>;
    case CUVIL_U16:
      return compare_values<uint16_t>;
    default:
      return compare_values<uint8_t>;
  }
}

}  // namespace cuvil::runtime
