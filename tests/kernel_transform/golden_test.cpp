// Golden texts: kernels/NAME.k before, kernels/NAME.TRANSFORM.k after. CUVIL_BLESS=1 rewrites the latter. Each pair
// also runs in the interpreter with several sizes.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "core/base/env.h"
#include "tests/kernel_transform/equivalence.h"

namespace cuvil::kernel {
namespace {

const std::filesystem::path kFolder = std::filesystem::path(CUVIL_SOURCE_DIR) / "tests/kernel_transform/kernels";

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}

TargetInfo avx512() {
  TargetInfo t;
  t.vector_bytes = 64;
  return t;
}

struct Transform {
  std::string name;
  std::function<Kernel(const Kernel&)> run;
  double tolerance;
};

const Transform kTransforms[] = {
    {"simplify", [](const Kernel& k) { return simplify(k); }, 0},
    {"unroll", [](const Kernel& k) { return unroll_loops(k); }, 0},
    {"vectorize", [](const Kernel& k) { return simplify(vectorize_loops(simplify(k), 64)); }, 1e-5},
    {"lower", [](const Kernel& k) { return lower_for_cpu(k, avx512()); }, 1e-5},
};

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, TextAndMeaning) {
  const auto dot = GetParam().find('.');
  const std::string kernel_name = GetParam().substr(0, dot), transform_name = GetParam().substr(dot + 1);
  const Kernel before = parse(read(kFolder / (kernel_name + ".k")));
  for (const Transform& t : kTransforms) {
    if (t.name != transform_name) continue;
    const Kernel after = t.run(before);
    const std::filesystem::path path = kFolder / (GetParam() + ".k");
    if (env::get("CUVIL_BLESS")) std::ofstream(path) << print(after);
    EXPECT_EQ(read(path), print(after)) << path;
    ASSERT_NO_THROW(verify(after));
    for (int64_t n : {1, 3, 16, 17, 37}) {
      std::vector<int64_t> dims(before.dims.size(), n);
      for (size_t i = 1; i < dims.size(); ++i) dims[i] = n + static_cast<int64_t>(i);
      expect_same(before, after, dims, t.tolerance);
      if (dims.empty()) break;
    }
    return;
  }
  FAIL() << "no transform " << transform_name;
}

std::vector<std::string> cases() {
  std::vector<std::string> r;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const std::string stem = entry.path().stem().string();
    if (stem.find('.') != std::string::npos) r.push_back(stem);
  }
  std::sort(r.begin(), r.end());
  return r;
}

INSTANTIATE_TEST_SUITE_P(All, Golden, testing::ValuesIn(cases()), [](const auto& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

}  // namespace
}  // namespace cuvil::kernel
