// The hand-written kernels run by the interpreter against direct computations in double.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "core/kernel/interpret.h"
#include "core/kernel/parse.h"
#include "tests/kernel/kernel_texts.h"

namespace cuvil::kernel::testing {
namespace {

/// Values in [-1, 1), the same everywhere.
std::vector<float> noise(size_t n, uint32_t seed) {
  std::vector<float> v(n);
  for (float& x : v) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<float>(static_cast<int32_t>(seed) >> 8) / (1 << 23);
  }
  return v;
}
Argument argument(std::vector<float>& v) { return {v.data(), static_cast<int64_t>(v.size() * sizeof(float))}; }
void run(const char* name, std::vector<std::vector<float>*> buffers, std::vector<int64_t> dims) {
  std::vector<Argument> arguments;
  for (auto* b : buffers) arguments.push_back(argument(*b));
  EXPECT_EQ(interpret(kernel_from_text(name), arguments, dims), 0);
}
double relu6(double x) { return std::min(std::max(x, 0.0), 6.0); }

TEST(Text, GemmTile) {
  for (int64_t m : {1, 14, 31})
    for (int64_t k : {0, 1, 40}) {
      std::vector<float> a = noise(m * k, 1), b = noise(k * 32, 2), c(m * 32, -1);
      run("gemm_tile", {&a, &b, &c}, {m, k});
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < 32; ++j) {
          float expected = 0;
          for (int64_t p = 0; p < k; ++p) expected = std::fma(a[i * k + p], b[p * 32 + j], expected);
          ASSERT_EQ(c[i * 32 + j], expected) << m << " " << k << " " << i << " " << j;
        }
    }
}

void attention(const char* name, int64_t h, int64_t s, int64_t d) {
  std::vector<float> q = noise(h * s * d, 1), k = noise(h * s * d, 2), v = noise(h * s * d, 3), out(h * s * d, -9);
  for (float& x : q) x *= 8;
  std::vector<float> scale = {1 / std::sqrt(static_cast<float>(d))};
  run(name, {&q, &k, &v, &scale, &out}, {h, s, d});
  for (int64_t head = 0; head < h; ++head)
    for (int64_t i = 0; i < s; ++i) {
      std::vector<double> p(s);
      double sum = 0, top = -1e300;
      for (int64_t j = 0; j < s; ++j) {
        for (int64_t c = 0; c < d; ++c) p[j] += double{q[(head * s + i) * d + c]} * k[(head * s + j) * d + c];
        p[j] /= std::sqrt(static_cast<double>(d));
        top = std::max(top, p[j]);
      }
      for (double& x : p) sum += x = std::exp(x - top);
      for (int64_t c = 0; c < d; ++c) {
        double expected = 0;
        for (int64_t j = 0; j < s; ++j) expected += p[j] / sum * v[(head * s + j) * d + c];
        ASSERT_NEAR(out[(head * s + i) * d + c], expected, 2e-6) << head << " " << i << " " << c;
      }
    }
}
TEST(Text, Attention) {
  attention("attention", 2, 19, 40);
  attention("attention", 1, 16, 16);
  attention("attention", 3, 1, 5);
}
TEST(Text, AttentionOnline) {
  attention("attention_online", 2, 19, 64);
  attention("attention_online", 1, 33, 32);
}

/// Convolution sizes, and index in NCHWc of 16.
struct Image {
  int64_t n, c, h, w;
  size_t at(int64_t in, int64_t ic, int64_t ih, int64_t iw) const {
    return static_cast<size_t>((((in * (c / 16) + ic / 16) * h + ih) * w + iw) * 16 + ic % 16);
  }
  size_t size() const { return static_cast<size_t>(n * c * h * w); }
  bool inside(int64_t ih, int64_t iw) const { return ih >= 0 && ih < h && iw >= 0 && iw < w; }
};

void winograd(int64_t n, int64_t ci, int64_t co, int64_t h, int64_t w) {
  constexpr double kG[6][3] = {{256.0 / 225, 0, 0},
                               {-2048.0 / 2975, -256.0 / 595, -32.0 / 119},
                               {-2048.0 / 2975, 256.0 / 595, -32.0 / 119},
                               {128.0 / 1071, 64.0 / 357, 32.0 / 119},
                               {128.0 / 1071, -64.0 / 357, 32.0 / 119},
                               {0, 0, 1}};
  const Image in{n, ci, h, w}, out{n, co, h, w};
  std::vector<float> x = noise(in.size(), 1), g = noise(co * ci * 9, 2), bias = noise(co, 3), y(out.size(), -9);
  const int64_t groups = (co / 16 + 1) / 2;
  std::vector<float> u(groups * 36 * ci * 32);
  for (int64_t o = 0; o < co; ++o)
    for (int64_t c = 0; c < ci; ++c)
      for (int a = 0; a < 36; ++a) {
        double sum = 0;
        for (int r = 0; r < 3; ++r)
          for (int s = 0; s < 3; ++s) sum += kG[a / 6][r] * kG[a % 6][s] * g[(o * ci + c) * 9 + r * 3 + s];
        u[((o / 32 * 36 + a) * ci + c) * 32 + o % 32] = static_cast<float>(sum);
      }
  run("winograd_f43", {&x, &u, &bias, &y}, {n, ci / 16, co / 16, h, w});
  double largest = 0, error = 0;
  for (int64_t b = 0; b < n; ++b)
    for (int64_t o = 0; o < co; ++o)
      for (int64_t i = 0; i < h; ++i)
        for (int64_t j = 0; j < w; ++j) {
          double expected = bias[o];
          for (int64_t c = 0; c < ci; ++c)
            for (int r = 0; r < 9; ++r)
              if (in.inside(i + r / 3 - 1, j + r % 3 - 1))
                expected += double{x[in.at(b, c, i + r / 3 - 1, j + r % 3 - 1)]} * g[(o * ci + c) * 9 + r];
          largest = std::max(largest, std::fabs(expected));
          error = std::max(error, std::fabs(y[out.at(b, o, i, j)] - expected));
        }
  EXPECT_LT(error, 1e-5 * largest) << n << " " << ci << " " << co << " " << h << " " << w;
}
TEST(Text, Winograd) {
  winograd(1, 32, 48, 9, 14);
  winograd(2, 16, 16, 5, 3);
  winograd(1, 16, 32, 32, 31);
}

void inverted_residual(int64_t n, int64_t ci, int64_t ce, int64_t h, int64_t w, int64_t rows) {
  const Image in{n, ci, h, w}, wide{n, ce, h, w};
  std::vector<float> x = noise(in.size(), 1), we = noise(ci * ce, 2), be = noise(ce, 3), wd = noise(ce * 9, 4),
                     bd = noise(ce, 5), wp = noise(ci * ce, 6), bp = noise(ci, 7), y(in.size(), -9);
  run("inverted_residual", {&x, &we, &be, &wd, &bd, &wp, &bp, &y}, {n, ci / 16, ce / 16, h, w, rows});
  auto matrix = [](int64_t out, int64_t inner, int64_t of) {  // [out / 16][in / 16][in][out]
    return ((out / 16 * (of / 16) + inner / 16) * 16 + inner % 16) * 16 + out % 16;
  };
  std::vector<double> expanded(wide.size()), deep(wide.size());
  for (int64_t b = 0; b < n; ++b) {
    for (int64_t e = 0; e < ce; ++e)
      for (int64_t p = 0; p < h * w; ++p) {
        double sum = be[e];
        for (int64_t c = 0; c < ci; ++c) sum += double{x[in.at(b, c, p / w, p % w)]} * we[matrix(e, c, ci)];
        expanded[wide.at(b, e, p / w, p % w)] = relu6(sum);
      }
    for (int64_t e = 0; e < ce; ++e)
      for (int64_t p = 0; p < h * w; ++p) {
        double sum = bd[e];
        for (int64_t r = 0; r < 9; ++r)
          if (wide.inside(p / w + r / 3 - 1, p % w + r % 3 - 1))
            sum += expanded[wide.at(b, e, p / w + r / 3 - 1, p % w + r % 3 - 1)] * wd[(e / 16 * 9 + r) * 16 + e % 16];
        deep[wide.at(b, e, p / w, p % w)] = relu6(sum);
      }
    for (int64_t c = 0; c < ci; ++c)
      for (int64_t p = 0; p < h * w; ++p) {
        double sum = double{bp[c]} + x[in.at(b, c, p / w, p % w)];
        for (int64_t e = 0; e < ce; ++e) sum += deep[wide.at(b, e, p / w, p % w)] * wp[matrix(c, e, ce)];
        ASSERT_NEAR(y[in.at(b, c, p / w, p % w)], sum, 2e-5) << b << " " << c << " " << p;
      }
  }
}
TEST(Text, InvertedResidual) {
  inverted_residual(1, 16, 48, 7, 6, 4);
  inverted_residual(2, 32, 32, 5, 3, 1);
  inverted_residual(1, 16, 16, 3, 4, 14);
}

TEST(Text, RoundTrips) {
  for (const char* name : {"gemm_tile", "attention", "attention_online", "winograd_f43", "inverted_residual"}) {
    const std::string once = print(kernel_from_text(name));
    EXPECT_EQ(print(parse(once)), once) << name;
  }
}

}  // namespace
}  // namespace cuvil::kernel::testing
