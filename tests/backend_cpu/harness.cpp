#include "tests/backend_cpu/harness.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>

#include "core/backends/cpu/cpu_backend.h"
#include "core/base/error.h"
#include "core/kernel/interpret.h"
#include "core/kernel/parse.h"
#include "core/kernel/scalar.h"
#include "core/kernel/transform.h"

namespace cuvil::backends::testing {

namespace {

std::vector<double> special_floats(DType dtype) {
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> v = {0.0,     -0.0,    1,      -1,    0.5,          -0.5,          1.5,          2.5,
                           -2.5,    3,       -7,     127,   128,          -129,          255,          256,
                           65504,   65520,   1e5,    -1e5,  2147483647.0, -2147483648.0, 4294967295.0, 4294967296.0,
                           9.3e18,  -9.3e18, 1.9e19, inf,   -inf,         std::nan(""),  1e-7,         6e-8,
                           2.98e-8, -1e-8,   1e-38,  1e-40, -1e-45,       3.4e38,        3.5e38};
  if (dtype == DType::f64)
    v.insert(v.end(), {1e300, -1e-310, 1.0 + 1e-15, 2049.0 + 1e-12, 65519.99999999, 3.40282357e38});
  return v;
}

std::vector<std::pair<kernel::Var, int64_t>> values_of(const kernel::Kernel& k, const std::vector<int64_t>& dims) {
  std::vector<std::pair<kernel::Var, int64_t>> values;
  for (size_t i = 0; i < k.dims.size(); ++i) values.emplace_back(k.dims[i], dims[i]);
  return values;
}

}  // namespace

std::vector<unsigned char> interesting_values(DType dtype, int64_t count, unsigned seed) {
  const auto size = static_cast<size_t>(size_of(dtype));
  std::vector<unsigned char> bytes(static_cast<size_t>(count) * size);
  std::mt19937_64 random(seed);
  const std::vector<double> special = special_floats(dtype);
  for (int64_t i = 0; i < count; ++i) {
    kernel::Scalar s;
    const uint64_t r = random();
    if (is_float(dtype)) {
      if (r % 3 == 0) {
        s.f = special[(r >> 8) % special.size()];
      } else if (r % 3 == 1) {
        s.f = static_cast<double>(static_cast<int64_t>(r >> 8) % 4001 - 2000) / 64;
      } else {
        s.f = std::ldexp(static_cast<double>(static_cast<int64_t>(r)), static_cast<int>((r >> 3) % 80) - 100);
      }
    } else {
      const int64_t corners[] = {0,
                                 1,
                                 -1,
                                 2,
                                 -2,
                                 7,
                                 127,
                                 -128,
                                 255,
                                 32767,
                                 -32768,
                                 65535,
                                 INT32_MAX,
                                 INT32_MIN,
                                 UINT32_MAX,
                                 INT64_MAX,
                                 INT64_MIN,
                                 (int64_t{1} << 53) + 1,
                                 (int64_t{1} << 60) + 1};
      const uint64_t kind = r % 4;
      s.i = kind == 0   ? corners[(r >> 8) % std::size(corners)]
            : kind == 1 ? static_cast<int64_t>(r >> 8) % 100 - 50
            : kind == 2 ? static_cast<int64_t>(r >> 8) % 70
                        : static_cast<int64_t>(random());
      if (dtype == DType::boolean) s.i &= 1;
    }
    kernel::store_scalar(bytes.data() + static_cast<size_t>(i) * size, dtype, s);
  }
  return bytes;
}

Memory make_memory(const kernel::Kernel& k, const std::vector<int64_t>& dims, unsigned seed) {
  const auto values = values_of(k, dims);
  Memory memory;
  for (const kernel::Buffer& b : k.params) {
    int64_t elements = 1, last = 0;
    for (size_t d = 0; d < b->shape.size(); ++d) {
      const int64_t extent = *kernel::evaluate(b->shape[d], values);
      elements *= extent;
      if (!b->strides.empty()) last += (extent - 1) * *kernel::evaluate(b->strides[d], values);
    }
    if (!b->strides.empty() && elements > 0) elements = last + 1;
    if (b->access == kernel::Access::in || b->access == kernel::Access::inout) {
      memory.push_back(interesting_values(b->type.dtype, elements, seed + static_cast<unsigned>(memory.size())));
    } else {
      memory.emplace_back(static_cast<size_t>(elements) * static_cast<size_t>(size_of(b->type.dtype)), 0xCD);
    }
  }
  return memory;
}

int32_t run(const KernelLibrary& library, const kernel::Kernel& k, const std::vector<int64_t>& dims, Memory& memory) {
  const auto values = values_of(k, dims);
  std::vector<const void*> buffers;
  for (auto& m : memory) buffers.push_back(m.data());
  constexpr size_t kGuard = 256;
  const auto bytes = static_cast<size_t>(*kernel::evaluate(kernel::scratch_bytes(k), values));
  std::vector<unsigned char> block(bytes + 2 * kGuard + 64, 0xA5);
  const auto start = (reinterpret_cast<uintptr_t>(block.data()) + kGuard + 63) / 64 * 64;
  auto* scratch = reinterpret_cast<unsigned char*>(start);
  for (size_t p = 0; p < k.phases.size(); ++p) {
    const std::string symbol = k.name + "_p" + std::to_string(p);
    const cuvil_kernel_fn f = library.find(symbol);
    EXPECT_NE(f, nullptr) << symbol;
    if (!f) return -1;
    const int64_t tasks = *kernel::evaluate(k.phases[p].tasks, values);
    const int64_t half = tasks / 2;  // in two calls, as threads would
    for (const auto& [begin, end] : {std::pair{int64_t{0}, half}, std::pair{half, tasks}})
      if (const int32_t code = f(buffers.data(), dims.data(), begin, end, scratch); code != 0) return code;
  }
  for (unsigned char* g = block.data(); g < scratch; ++g) EXPECT_EQ(*g, 0xA5) << "written before the scratch";
  for (unsigned char* g = scratch + bytes; g < block.data() + block.size(); ++g)
    EXPECT_EQ(*g, 0xA5) << "written behind the scratch of " << bytes << " bytes, at " << g - scratch;
  return 0;
}

::testing::AssertionResult equal_memory(const kernel::Kernel& k, const Memory& expected, const Memory& actual) {
  for (size_t p = 0; p < expected.size(); ++p) {
    if (expected[p] == actual[p]) continue;
    const DType dtype = k.params[p]->type.dtype;
    const auto size = static_cast<size_t>(size_of(dtype));
    for (size_t i = 0; i * size < expected[p].size(); ++i) {
      const unsigned char *e = expected[p].data() + i * size, *a = actual[p].data() + i * size;
      if (std::memcmp(e, a, size) == 0) continue;
      const kernel::Scalar x = kernel::load_scalar(e, dtype), y = kernel::load_scalar(a, dtype);
      if (is_float(dtype) && std::isnan(x.f) && std::isnan(y.f)) continue;
      return ::testing::AssertionFailure() << "kernel " << k.name << ", parameter " << k.params[p]->name << "[" << i
                                           << "]: expected " << (is_float(dtype) ? x.f : static_cast<double>(x.i))
                                           << ", got " << (is_float(dtype) ? y.f : static_cast<double>(y.i));
    }
  }
  return ::testing::AssertionSuccess();
}

namespace {

Interpreted interpreted(const kernel::Kernel& k, const std::vector<int64_t>& dims, Memory memory) {
  Interpreted r;
  r.before = memory;
  r.after = std::move(memory);
  std::vector<kernel::Argument> arguments;
  for (auto& m : r.after) arguments.push_back({m.data(), static_cast<int64_t>(m.size())});
  r.code = kernel::interpret(k, arguments, dims);
  return r;
}

}  // namespace

Interpreted interpreted(const kernel::Kernel& k, const std::vector<int64_t>& dims, unsigned seed) {
  return interpreted(k, dims, make_memory(k, dims, seed));
}

Interpreted interpreted(const kernel::testing::RandomKernel& random) {
  return interpreted(kernel::expand_math(random.kernel), random.dims, random.memory);
}

std::vector<kernel::testing::RandomKernel> random_kernels(uint64_t first_seed, int count,
                                                          const kernel::testing::RandomKernelOptions& options) {
  std::vector<kernel::testing::RandomKernel> all;
  for (uint64_t seed = first_seed; seed < first_seed + static_cast<uint64_t>(count); ++seed) {
    all.push_back(kernel::testing::random_kernel(seed, options));
    all.back().kernel.name += "_" + std::to_string(seed);
    try {
      kernel::expand_math(all.back().kernel);
    } catch (const Error& e) {
      if (e.status() != CUVIL_UNSUPPORTED_ERROR) throw;
      all.pop_back();
    }
  }
  return all;
}

void expect_as_interpreted(const std::vector<Case>& cases, const TargetInfo& target, unsigned seed) {
  std::vector<kernel::Kernel> kernels;
  for (const Case& c : cases) kernels.push_back(c.kernel);
  const auto library = cpu::backend().load(kernels, target);
  for (const Case& c : cases) {
    for (const std::vector<int64_t>& dims : c.dims) {
      const Interpreted expected = interpreted(c.kernel, dims, seed);
      Memory actual = expected.before;
      EXPECT_EQ(expected.code, run(*library, c.kernel, dims, actual)) << kernel::print(c.kernel);
      if (expected.code == 0) {
        EXPECT_TRUE(equal_memory(c.kernel, expected.after, actual)) << target.name << "\n" << kernel::print(c.kernel);
      }
    }
  }
}

std::vector<std::string> runnable_targets() {
  std::vector<std::string> names;
  const TargetInfo host = TargetInfo::host();
  for (const std::string& name : TargetInfo::names()) {
    const TargetInfo t = TargetInfo::named(name);
    if (t.arch == host.arch && (t.features & ~host.features) == 0) names.push_back(name);
  }
  return names;
}

std::vector<std::string> widest_and_narrowest() {
  const std::vector<std::string> all = runnable_targets();
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(all.size(), 2))};
}

CacheFolder::CacheFolder() {
  std::string path = (std::filesystem::temp_directory_path() / "cuvil-cache-test-XXXXXX").string();
  path_ = ::mkdtemp(path.data());
  ::setenv("CUVIL_CACHE_DIR", path_.c_str(), 1);
}
CacheFolder::~CacheFolder() {
  ::setenv("CUVIL_CACHE_DIR", "off", 1);
  std::filesystem::remove_all(path_);
}

}  // namespace cuvil::backends::testing
