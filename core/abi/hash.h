// XXH64: the checksum of .cvl sections and constants. Fast (about 10 GB/s), not cryptographic.
// Source: the algorithm's specification, https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cuvil {

namespace detail {
inline constexpr uint64_t kXxhPrime1 = 0x9E3779B185EBCA87ull;
inline constexpr uint64_t kXxhPrime2 = 0xC2B2AE3D27D4EB4Full;
inline constexpr uint64_t kXxhPrime3 = 0x165667B19E3779F9ull;
inline constexpr uint64_t kXxhPrime4 = 0x85EBCA77C2B2AE63ull;
inline constexpr uint64_t kXxhPrime5 = 0x27D4EB2F165667C5ull;

inline uint64_t rotate_left(uint64_t x, int n) { return (x << n) | (x >> (64 - n)); }
template <typename T>
inline T read_le(const unsigned char* p) {
  T value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}
inline uint64_t xxh_round(uint64_t lane, uint64_t input) {
  return rotate_left(lane + input * kXxhPrime2, 31) * kXxhPrime1;
}
inline uint64_t xxh_merge(uint64_t acc, uint64_t lane) { return (acc ^ xxh_round(0, lane)) * kXxhPrime1 + kXxhPrime4; }
}  // namespace detail

/// XXH64 of `bytes` bytes at `data`.
inline uint64_t xxh64(const void* data, size_t bytes, uint64_t seed = 0) {
  using namespace detail;
  const auto* p = static_cast<const unsigned char*>(data);
  size_t left = bytes;
  uint64_t acc;
  if (left >= 32) {
    uint64_t a = seed + kXxhPrime1 + kXxhPrime2, b = seed + kXxhPrime2, c = seed, d = seed - kXxhPrime1;
    for (; left >= 32; left -= 32, p += 32) {
      a = xxh_round(a, read_le<uint64_t>(p));
      b = xxh_round(b, read_le<uint64_t>(p + 8));
      c = xxh_round(c, read_le<uint64_t>(p + 16));
      d = xxh_round(d, read_le<uint64_t>(p + 24));
    }
    acc = rotate_left(a, 1) + rotate_left(b, 7) + rotate_left(c, 12) + rotate_left(d, 18);
    acc = xxh_merge(xxh_merge(xxh_merge(xxh_merge(acc, a), b), c), d);
  } else {
    acc = seed + kXxhPrime5;
  }
  acc += bytes;
  for (; left >= 8; left -= 8, p += 8)
    acc = rotate_left(acc ^ xxh_round(0, read_le<uint64_t>(p)), 27) * kXxhPrime1 + kXxhPrime4;
  if (left >= 4) {
    acc = rotate_left(acc ^ read_le<uint32_t>(p) * kXxhPrime1, 23) * kXxhPrime2 + kXxhPrime3;
    left -= 4, p += 4;
  }
  for (; left > 0; --left, ++p) acc = rotate_left(acc ^ *p * kXxhPrime5, 11) * kXxhPrime1;
  acc = (acc ^ (acc >> 33)) * kXxhPrime2;
  acc = (acc ^ (acc >> 29)) * kXxhPrime3;
  return acc ^ (acc >> 32);
}

}  // namespace cuvil
