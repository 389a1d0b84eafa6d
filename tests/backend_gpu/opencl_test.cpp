// Kernels printed as OpenCL C and run on a device, against the interpreter: a fused elementwise cluster, a softmax over
// rows with a tree in shared memory, a tiled matrix product. Skipped where the machine has no OpenCL device.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "core/backends/gpu/opencl_c.h"
#include "core/base/error.h"
#include "core/kernel/interpret.h"
#include "tests/backend_gpu/device.h"

namespace cuvil {
namespace {

using namespace kernel;  // NOLINT

constexpr Type kF32{DType::f32, 1};

std::vector<uint8_t> random_floats(size_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::uniform_real_distribution<float> uniform(-3, 3);
  std::vector<uint8_t> bytes(n * 4);
  for (size_t i = 0; i < n; ++i) {
    const float v = uniform(rng);
    std::memcpy(&bytes[i * 4], &v, 4);
  }
  return bytes;
}

float float_at(const std::vector<uint8_t>& bytes, size_t i) {
  float v = 0;
  std::memcpy(&v, &bytes[i * 4], 4);
  return v;
}

/// Runs on the device and in the interpreter; compares the last buffer.
void compare(const Kernel& kernel, std::vector<std::vector<uint8_t>> buffers, const std::vector<int64_t>& dims,
             const std::vector<int64_t>& tasks, size_t group_size, double tolerance) {
  static testing::Device device;
  if (!device.available()) GTEST_SKIP() << "no OpenCL device on this machine";
  std::vector<std::vector<uint8_t>> expected = buffers;
  std::vector<Argument> arguments;
  for (auto& b : expected) arguments.push_back({b.data(), static_cast<int64_t>(b.size())});
  ASSERT_EQ(interpret(kernel, arguments, dims), 0);
  ASSERT_EQ(device.run(kernel, backends::print_opencl(kernel), buffers, dims, tasks, group_size), 0);
  for (size_t i = 0; i < buffers.back().size() / 4; ++i) {
    const float want = float_at(expected.back(), i), got = float_at(buffers.back(), i);
    ASSERT_NEAR(got, want, tolerance * (1 + std::fabs(want))) << "element " << i << " on " << device.name();
  }
}

TEST(OpenCl, FusedElementwiseCluster) {
  Builder b("cluster");
  Expr n = b.dim("N");
  Buffer x = b.param("x", kF32, {n}, Access::in), y = b.param("y", kF32, {n}, Access::in);
  Buffer z = b.param("z", kF32, {n}, Access::out);
  b.phase(ceildiv(n, 256), [&](Expr t) {
    b.loop("j", 0, 256, LoopKind::gpu_thread_x, [&](Expr j) {
      Expr i = b.let("i", t * 256 + j), inside = i < n;
      Expr v = load(x, {i}, 1, inside) * load(y, {i}, 1, inside) + constant(kF32, 0.5);
      Expr gelu = v * constant(kF32, 0.5) * (constant(kF32, 1) + make(Op::erf, {v * constant(kF32, 0.70710678)}));
      b.store(z, {i}, select(v < constant(kF32, -2), make(Op::exp, {v}), gelu), inside);
    });
  });
  const Kernel kernel = b.finish();
  for (int64_t size : {1, 255, 256, 1000})
    compare(kernel, {random_floats(size, 1), random_floats(size, 2), std::vector<uint8_t>(size * 4)}, {size},
            {(size + 255) / 256}, 64, 1e-6);
}

TEST(OpenCl, SoftmaxWithSharedMemory) {
  constexpr int kGroup = 32;
  Builder b("softmax");
  Expr rows = b.dim("R"), columns = b.dim("C");
  Buffer x = b.param("x", kF32, {rows, columns}, Access::in), y = b.param("y", kF32, {rows, columns}, Access::out);
  b.phase(rows, [&](Expr r) {
    Buffer part = b.alloc("part", kF32, {kGroup}, Space::shared);
    auto reduce = [&](double start, const std::function<Expr(Expr, Expr)>& combine,
                      const std::function<Expr(Expr)>& at) {
      b.loop("w", 0, kGroup, LoopKind::gpu_thread_x, [&](Expr w) {
        Buffer acc = b.alloc("acc", kF32, {1}, Space::reg);
        b.store(acc, {0}, constant(kF32, start));
        b.loop(
            "c", w, columns, LoopKind::serial, [&](Expr c) { b.store(acc, {0}, combine(load(acc, {0}), at(c))); },
            kGroup);
        b.store(part, {w}, load(acc, {0}));
      });
      b.barrier();
      for (int half = kGroup / 2; half >= 1; half /= 2) {
        b.loop("w", 0, half, LoopKind::gpu_thread_x,
               [&](Expr w) { b.store(part, {w}, combine(load(part, {w}), load(part, {w + half}))); });
        b.barrier();
      }
      Expr total = b.let("total", load(part, {0}));
      b.barrier();
      return total;
    };
    Expr top = reduce(-INFINITY, [](Expr p, Expr q) { return max(p, q); }, [&](Expr c) { return load(x, {r, c}); });
    auto e = [&](Expr c) { return make(Op::exp, {load(x, {r, c}) - top}); };
    Expr sum = reduce(0, [](Expr p, Expr q) { return p + q; }, e);
    b.loop("w", 0, kGroup, LoopKind::gpu_thread_x, [&](Expr w) {
      b.loop("c", w, columns, LoopKind::serial, [&](Expr c) { b.store(y, {r, c}, e(c) / sum); }, kGroup);
    });
  });
  const Kernel kernel = b.finish();
  for (auto [r, c] : {std::pair<int64_t, int64_t>{1, 1}, {3, 100}, {5, 33}})
    compare(kernel, {random_floats(r * c, 3), std::vector<uint8_t>(r * c * 4)}, {r, c}, {r}, kGroup, 1e-6);
}

TEST(OpenCl, TiledMatmul) {
  constexpr int kTile = 8;
  Builder b("matmul");
  Expr m = b.dim("M"), n = b.dim("N"), k = b.dim("K");
  Buffer x = b.param("a", kF32, {m, k}, Access::in), w = b.param("b", kF32, {k, n}, Access::in);
  Buffer y = b.param("c", kF32, {m, n}, Access::out);
  b.phase(ceildiv(m, kTile) * ceildiv(n, kTile), [&](Expr t) {
    Expr row0 = b.let("row0", floordiv(t, ceildiv(n, kTile)) * kTile),
         col0 = b.let("col0", (t % ceildiv(n, kTile)) * kTile);
    Buffer ta = b.alloc("ta", kF32, {kTile, kTile}, Space::shared),
           tb = b.alloc("tb", kF32, {kTile, kTile}, Space::shared);
    Buffer sum = b.alloc("sum", kF32, {kTile, kTile}, Space::shared);
    auto each = [&](const std::function<void(Expr, Expr)>& f) {
      b.loop("e", 0, kTile * kTile, LoopKind::gpu_thread_x, [&](Expr e) { f(floordiv(e, kTile), e % kTile); });
      b.barrier();
    };
    each([&](Expr i, Expr j) { b.store(sum, {i, j}, constant(kF32, 0)); });
    b.loop(
        "k0", 0, k, LoopKind::serial,
        [&](Expr k0) {
          each([&](Expr i, Expr j) {
            b.store(ta, {i, j}, load(x, {row0 + i, k0 + j}, 1, (row0 + i < m) & (k0 + j < k)));
            b.store(tb, {i, j}, load(w, {k0 + i, col0 + j}, 1, (k0 + i < k) & (col0 + j < n)));
          });
          each([&](Expr i, Expr j) {
            Expr s = load(sum, {i, j});
            for (int q = 0; q < kTile; ++q) s = fma(load(ta, {i, q}), load(tb, {q, j}), s);
            b.store(sum, {i, j}, s);
          });
        },
        kTile);
    each([&](Expr i, Expr j) { b.store(y, {row0 + i, col0 + j}, load(sum, {i, j}), (row0 + i < m) & (col0 + j < n)); });
  });
  const Kernel kernel = b.finish();
  for (auto [rows, cols, depth] : {std::tuple<int64_t, int64_t, int64_t>{8, 8, 8}, {5, 19, 33}, {1, 1, 1}})
    compare(kernel,
            {random_floats(rows * depth, 4), random_floats(depth * cols, 5), std::vector<uint8_t>(rows * cols * 4)},
            {rows, cols, depth}, {((rows + 7) / 8) * ((cols + 7) / 8)}, kTile * kTile, 1e-5);
}

TEST(OpenCl, RefusesWithAReason) {
  Builder b("half");
  Buffer x = b.param("x", {DType::f16, 1}, {4}, Access::out);
  b.phase(1, [&](Expr) { b.store(x, {0}, constant({DType::f16, 1}, 1)); });
  const Kernel kernel = b.finish();
  ASSERT_TRUE(backends::refuse_opencl(kernel).has_value());
  EXPECT_NE(backends::refuse_opencl(kernel)->find("16-bit"), std::string::npos);
  EXPECT_THROW(backends::print_opencl(kernel), Error);
}

}  // namespace
}  // namespace cuvil
