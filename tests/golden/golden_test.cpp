// Golden files: every *.cir here holds a graph, the passes to run over it (its first line) and, behind "// CHECK:",
// what must come out, to the letter. CUVIL_BLESS=1 rewrites what stands behind it. Each graph is also evaluated before
// and after, on random inputs.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "core/base/env.h"
#include "core/passes/evaluate.h"
#include "core/passes/run.h"
#include "tests/random/random_inputs.h"

namespace cuvil {
namespace {

constexpr char kSeparator[] = "// CHECK:\n";
const std::filesystem::path kFolder = std::filesystem::path(CUVIL_SOURCE_DIR) / "tests/golden";

struct GoldenFile {
  std::string input, expected, passes, target = "x86-64-v3";
  bool strict = false;
};

GoldenFile read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  GoldenFile f;
  const size_t at = text.find(kSeparator);
  f.input = text.substr(0, at);
  if (at != std::string::npos) f.expected = text.substr(at + sizeof kSeparator - 1);
  std::istringstream line(text.substr(0, text.find('\n')));
  std::string word;
  line >> word >> word;
  EXPECT_EQ(word, "RUN:") << path << ": the first line is '// RUN: --passes=...'";
  while (line >> word) {
    if (word.rfind("--passes=", 0) == 0)
      f.passes = word.substr(9);
    else if (word.rfind("--target=", 0) == 0)
      f.target = word.substr(9);
    else if (word == "--strict")
      f.strict = true;
    else
      ADD_FAILURE() << path << ": unknown option " << word;
  }
  return f;
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, TextAndMeaning) {
  const std::filesystem::path path = kFolder / GetParam();
  const GoldenFile f = read_file(path);
  const TargetInfo target = TargetInfo::named(f.target);
  ir::Graph before = passes::read(f.input, GetParam());
  ir::Graph after = passes::run_named(before.clone(), f.passes, {target, f.strict}, true);

  const std::string text = ir::print(after, false);
  if (env::get("CUVIL_BLESS").value_or("") == "1") {
    std::ofstream(path, std::ios::binary) << f.input << kSeparator << text;
  } else {
    EXPECT_EQ(text, f.expected) << "CUVIL_BLESS=1 accepts the new text";
  }
  EXPECT_EQ(ir::print(passes::run_named(after.clone(), f.passes, {target, f.strict}, true), false), text)
      << "a second run must find nothing left to do";

  for (uint64_t seed = 1; seed <= 2; ++seed) {
    const std::vector<ir::Tensor> inputs = test::random_inputs(before, seed);
    const auto wrong = test::difference(passes::evaluate(before, inputs, target),
                                        passes::evaluate(after, inputs, target), f.strict ? 0 : 1e-4);
    EXPECT_FALSE(wrong) << *wrong;
  }
}

std::vector<std::string> golden_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    if (entry.path().extension() == ".cir") names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Files, Golden, testing::ValuesIn(golden_files()), [](const auto& info) {
  std::string name = std::filesystem::path(info.param).stem().string();
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

}  // namespace
}  // namespace cuvil
