// f16 and bf16 as numbers: exact to double and back, rounded once to nearest, ties to even.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace cuvil::kernel {

/// A binary float with `mantissa_bits` stored fraction bits and `exponent_bits`, in the low bits of the result.
/// Subnormals are kept, too large numbers become infinity, a NaN stays a (quiet) NaN. (IEEE 754-2019, 4.3.1)
template <int exponent_bits, int mantissa_bits>
uint16_t narrow_float(double value) {
  constexpr int kBias = (1 << (exponent_bits - 1)) - 1;
  constexpr uint64_t kInfinity = ((uint64_t{1} << exponent_bits) - 1) << mantissa_bits;
  const auto bits = std::bit_cast<uint64_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 63) << 15);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | kInfinity | (uint64_t{1} << (mantissa_bits - 1)));
  const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
  if (magnitude == 0) return sign;
  const int exponent = static_cast<int>(magnitude >> 52) - 1023;  // a subnormal double is far below both formats
  const uint64_t fraction = (magnitude & ((uint64_t{1} << 52) - 1)) | (uint64_t{1} << 52);
  if (exponent > kBias) return static_cast<uint16_t>(sign | kInfinity);
  int drop = 52 - mantissa_bits;  // bits of the fraction that do not fit
  uint64_t base = static_cast<uint64_t>(exponent + kBias) << mantissa_bits;
  if (exponent < 1 - kBias) {  // subnormal in the narrow format
    drop += (1 - kBias) - exponent;
    base = 0;
    if (drop > 54) return sign;
  } else {
    base -= uint64_t{1} << mantissa_bits;  // the implicit bit is added with the fraction
  }
  const uint64_t kept = fraction >> drop, rest = fraction & ((uint64_t{1} << drop) - 1),
                 half = uint64_t{1} << (drop - 1);
  const uint64_t up = rest > half || (rest == half && (kept & 1)) ? 1 : 0;
  return static_cast<uint16_t>(sign | (base + kept + up));  // a carry walks into the exponent, up to infinity
}

template <int exponent_bits, int mantissa_bits>
float widen_float(uint16_t bits) {
  constexpr int kBias = (1 << (exponent_bits - 1)) - 1, kTop = (1 << exponent_bits) - 1;
  const uint32_t sign = static_cast<uint32_t>(bits >> 15) << 31;
  const int exponent = (bits >> mantissa_bits) & kTop;
  const uint32_t fraction = bits & ((1u << mantissa_bits) - 1);
  if (exponent == kTop) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << (23 - mantissa_bits)));
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(fraction), 1 - kBias - mantissa_bits);
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | static_cast<uint32_t>(exponent - kBias + 127) << 23 |
                              fraction << (23 - mantissa_bits));
}

/// The storage of one element, and its value.
struct Half {
  uint16_t bits = 0;
  float value() const { return widen_float<5, 10>(bits); }
  static Half round(double v) { return {narrow_float<5, 10>(v)}; }
};
struct BFloat {
  uint16_t bits = 0;
  float value() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
  static BFloat round(double v) { return {narrow_float<8, 7>(v)}; }
};
struct Bool {
  uint8_t bits = 0;
};

/// An integer as a double rounded to odd: rounding it again to a narrower format gives what rounding once would.
inline double to_odd_double(uint64_t magnitude) {
  const int excess = 64 - std::countl_zero(magnitude) - 53;
  if (magnitude == 0 || excess <= 0) return static_cast<double>(magnitude);
  const uint64_t sticky = (magnitude & ((uint64_t{1} << excess) - 1)) != 0;
  return std::ldexp(static_cast<double>((magnitude >> excess) | sticky), excess);
}

/// a * b + c of narrow floats, rounded to odd: a * b is exact, the sum's lost bits are kept as the last one.
inline double fma_to_odd(double a, double b, double c) {
  const double p = a * b, s = p + c;
  if (!std::isfinite(s)) return s;
  const double back = s - p, error = (p - (s - back)) + (c - back);
  const auto bits = std::bit_cast<uint64_t>(s);
  if (error == 0 || (bits & 1)) return s;
  const bool away = (error > 0) == (s > 0);
  return std::bit_cast<double>(away ? bits + 1 : bits - 1);
}

}  // namespace cuvil::kernel
