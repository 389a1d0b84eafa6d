// A register tile written in Kernel IR against the machine's FMA peak, both on one thread in the same run, in turns so
// that a drifting clock hits both. Usage: bench-gemm-tile [ROUNDS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "core/backends/cpu/cpu_backend.h"
#include "core/base/error.h"
#include "core/kernel/parse.h"

namespace {

using namespace cuvil;  // NOLINT

double seconds_of(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

constexpr int kChains = 12;  // independent accumulators: more than latency times throughput

#define CUVIL_TWELVE(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

// By hand, so that the peak does not depend on the code generator under test.
#if defined(__x86_64__)
#define CUVIL_ZMM(n) "vfmadd231ps %%zmm14, %%zmm15, %%zmm" #n "\n"
#define CUVIL_YMM(n) "vfmadd231ps %%ymm14, %%ymm15, %%ymm" #n "\n"
#define CUVIL_CLOBBERS                                                                                                \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm14", "xmm15", \
      "cc"
void multiply_add(int64_t steps, bool wide) {
  if (wide) {
    __asm__ volatile(
        "vpxord %%zmm14, %%zmm14, %%zmm14\n vpxord %%zmm15, %%zmm15, %%zmm15\n .p2align 5\n 1:\n" CUVIL_TWELVE(
            CUVIL_ZMM) "dec %0\n jnz 1b\n vzeroupper\n"
        : "+r"(steps)
        :
        : CUVIL_CLOBBERS);
  } else {
    __asm__ volatile(
        "vxorps %%ymm14, %%ymm14, %%ymm14\n vxorps %%ymm15, %%ymm15, %%ymm15\n .p2align 5\n 1:\n" CUVIL_TWELVE(
            CUVIL_YMM) "dec %0\n jnz 1b\n vzeroupper\n"
        : "+r"(steps)
        :
        : CUVIL_CLOBBERS);
  }
}
#else
#define CUVIL_NEON(n) "fmla v" #n ".4s, v14.4s, v15.4s\n"
void multiply_add(int64_t steps, bool) {
  __asm__ volatile("movi v14.4s, #0\n movi v15.4s, #0\n 1:\n" CUVIL_TWELVE(CUVIL_NEON) "subs %0, %0, #1\n b.ne 1b\n"
                   : "+r"(steps)
                   :
                   : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v14", "v15", "cc");
}
#endif

kernel::Kernel kernel_of_text(const std::string& name) {
  std::ifstream in(std::string(CUVIL_SOURCE_DIR) + "/tests/backend_cpu/text/" + name + ".kir");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return kernel::parse(text);
}

/// Aligned as the arena is; a vector that crosses cache lines costs a second access.
class Floats {
 public:
  Floats(int64_t count, float value) : memory_(static_cast<size_t>(count) + 16, value) {
    const auto at = reinterpret_cast<uintptr_t>(memory_.data());
    data_ = memory_.data() + ((at + 63) / 64 * 64 - at) / sizeof(float);
  }
  float* data() { return data_; }

 private:
  std::vector<float> memory_;
  float* data_ = nullptr;
};

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

int run(int rounds) {
  const TargetInfo host = TargetInfo::host();
  const bool wide = host.vector_bytes == 64;
  const bool neon = host.arch == Arch::aarch64;
  const kernel::Kernel tile = kernel_of_text(wide ? "gemm_14x2_avx512" : neon ? "gemm_8x3_neon" : "gemm_6x2_avx2");
  backends::CompileStatistics statistics;
  const auto library = backends::cpu::backend().load({&tile, 1}, host, &statistics);
  const cuvil_kernel_fn f = library->find(tile.name + "_p0");

  const int64_t rows = wide ? 14 : neon ? 8 : 6, columns = (neon ? 3 : 2) * host.lanes_f32(), depth = 192, tiles = 4;
  Floats a(tiles * depth * rows, 0.5F), b(depth * columns, 0.25F), c(tiles * rows * columns, 0);
  const void* buffers[] = {a.data(), b.data(), c.data()};
  const int64_t dims[] = {tiles, depth};
  constexpr int kRepeat = 300;  // short rounds: what else runs on the machine hits few of them
  const double tile_flops = 2.0 * static_cast<double>(tiles * depth * rows * columns) * kRepeat;
  constexpr int64_t kSteps = 500000;
  const double peak_flops = 2.0 * kChains * host.lanes_f32() * static_cast<double>(kSteps);

  std::vector<double> peaks, ours, shares;
  for (int r = 0; r < rounds; ++r) {
    const double before = peak_flops / seconds_of([&] { multiply_add(kSteps, wide); });
    const double own = tile_flops / seconds_of([&] {
                         for (int i = 0; i < kRepeat; ++i) f(buffers, dims, 0, tiles, nullptr);
                       });
    const double after = peak_flops / seconds_of([&] { multiply_add(kSteps, wide); });
    peaks.push_back(std::max(before, after) / 1e9);
    ours.push_back(own / 1e9);
    shares.push_back(100 * own / std::max(before, after));
  }
  if (c.data()[0] != static_cast<float>(depth) * 0.125F) throw_internal("the tile computed something else");
  std::printf("kernel %s, compiled in %.1f ms\n", tile.name.c_str(), 1e3 * statistics.seconds);
  std::printf("FMA peak %8.1f GFLOP/s (median of %d rounds)\n", median(peaks), rounds);
  std::printf("tile     %8.1f GFLOP/s\n", median(ours));
  std::printf("share    %8.1f %% (median of rounds; best %.1f %%)\n", median(shares),
              *std::max_element(shares.begin(), shares.end()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? std::max(1, std::atoi(argv[1])) : 101);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
