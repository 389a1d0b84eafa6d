// Runs a kernel before and after a transform on the same random inputs and compares what they write.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "core/kernel/interpret.h"
#include "core/kernel/parse.h"
#include "core/kernel/scalar.h"
#include "core/kernel/transform.h"
#include "core/kernel/verify.h"

namespace cuvil::kernel {

/// One memory block per parameter, filled with small random values (in, inout) or 0xCD bytes.
inline std::vector<std::vector<unsigned char>> make_memory(const Kernel& k, const std::vector<int64_t>& dims,
                                                           unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::pair<Var, int64_t>> values;
  for (size_t i = 0; i < k.dims.size(); ++i) values.emplace_back(k.dims[i], dims[i]);
  std::vector<std::vector<unsigned char>> memory;
  for (const Buffer& b : k.params) {
    int64_t elements = 1, last = 0;
    for (size_t d = 0; d < b->shape.size(); ++d) {
      const int64_t extent = *evaluate(b->shape[d], values);
      elements *= extent;
      if (!b->strides.empty()) last += (extent - 1) * *evaluate(b->strides[d], values);
    }
    if (!b->strides.empty()) elements = elements == 0 ? 0 : last + 1;
    const int size = size_of(b->type.dtype);
    std::vector<unsigned char> m(static_cast<size_t>(elements * size), 0xCD);
    if (b->access == Access::in || b->access == Access::inout) {
      for (int64_t i = 0; i < elements; ++i) {
        const int64_t v = static_cast<int64_t>(random() % 17) - (is_unsigned_int(b->type.dtype) ? 0 : 8);
        store_scalar(m.data() + i * size, b->type.dtype, {v, static_cast<double>(v) / 4});
      }
    }
    memory.push_back(std::move(m));
  }
  return memory;
}

/// Byte equality, or a relative error up to `tolerance` for f32.
inline void expect_equal_memory(const Kernel& k, const std::vector<std::vector<unsigned char>>& a,
                                const std::vector<std::vector<unsigned char>>& b, double tolerance) {
  for (size_t p = 0; p < a.size(); ++p) {
    const bool close = tolerance > 0 && k.params[p]->type.dtype == DType::f32;
    if (!close) {
      EXPECT_TRUE(a[p] == b[p]) << "parameter " << k.params[p]->name << " differs";
      continue;
    }
    for (size_t i = 0; i + 4 <= a[p].size(); i += 4) {
      float x = 0, y = 0;
      std::memcpy(&x, a[p].data() + i, 4);
      std::memcpy(&y, b[p].data() + i, 4);
      if (std::memcmp(&x, &y, 4) == 0 || (std::isnan(x) && std::isnan(y))) continue;
      ASSERT_LE(std::fabs(x - y), tolerance * std::max(1.0f, std::fabs(x)))
          << "parameter " << k.params[p]->name << " element " << i / 4;
    }
  }
}

inline void expect_same(const Kernel& before, const Kernel& after, const std::vector<int64_t>& dims,
                        double tolerance = 0, unsigned seed = 1) {
  const auto run = [&](const Kernel& k, std::vector<std::vector<unsigned char>>& memory) {
    std::vector<Argument> arguments;
    for (auto& m : memory) arguments.push_back({m.data(), static_cast<int64_t>(m.size())});
    return interpret(k, arguments, dims);
  };
  auto a = make_memory(before, dims, seed), b = a;
  SCOPED_TRACE(print(after));
  int32_t x = 0, y = 0;
  ASSERT_NO_THROW(x = run(before, a)) << print(before);
  ASSERT_NO_THROW(y = run(after, b));
  EXPECT_EQ(x, y);
  if (x == 0) expect_equal_memory(before, a, b, tolerance);
}

}  // namespace cuvil::kernel
