// Reads the assembly of register tiles: what one step of k costs, and that nothing of it goes through the stack.
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "core/backends/cpu/inspect.h"
#include "tests/backend_cpu/files.h"
#include "tests/backend_cpu/harness.h"

namespace cuvil::backends::testing {
namespace {

/// The instructions of the innermost loop that has the most of them: from its label to the jump back to it.
std::vector<std::string> hottest_loop(const std::string& assembly) {
  std::vector<std::string> lines;
  std::istringstream in(assembly);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::vector<std::string> best;
  const std::regex label("^(\\.L[A-Za-z0-9_]+):.*");
  for (size_t i = 0; i < lines.size(); ++i) {
    std::smatch m;
    if (!std::regex_match(lines[i], m, label)) continue;
    const std::string back = m[1];
    std::vector<std::string> body;
    for (size_t j = i + 1; j < lines.size(); ++j) {
      if (std::regex_match(lines[j], label)) break;
      if (lines[j].size() < 2 || lines[j][0] != '\t' || lines[j][1] == '.' || lines[j][1] == '#') continue;
      body.push_back(lines[j]);
      const bool jumps =
          std::regex_search(lines[j], std::regex(std::regex_replace(back, std::regex("\\."), "\\.") + "\\b"));
      if (jumps) {
        if (body.size() > best.size()) best = body;
        break;
      }
    }
  }
  return best;
}

int count(const std::vector<std::string>& lines, const std::string& pattern) {
  const std::regex r(pattern);
  int n = 0;
  for (const std::string& line : lines) n += std::regex_search(line, r);
  return n;
}

std::string join(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  return all;
}

struct Tile {
  std::string kernel, target;
  int fmas, load_instructions, rows;
  std::string fma, load, stack;  ///< patterns; a pair of vectors is one load instruction
};
void PrintTo(const Tile& tile, std::ostream* out) { *out << tile.kernel << " for " << tile.target; }
class Tiles : public ::testing::TestWithParam<Tile> {};

TEST_P(Tiles, InnerLoopIsTight) {
  const Tile& tile = GetParam();
  const std::string text = cpu::assembly(kernel_of_text(tile.kernel), TargetInfo::named(tile.target));
  const std::vector<std::string> loop = hottest_loop(text);
  ASSERT_FALSE(loop.empty()) << text;
  const std::string shown = join(loop);
  EXPECT_EQ(count(loop, tile.fma), tile.fmas) << shown;
  EXPECT_EQ(count(loop, tile.stack), 0) << "the loop touches the stack:\n" << shown;
  EXPECT_EQ(count(loop, tile.load), tile.load_instructions) << shown;
  // FMAs, the loads of b, one broadcast per row at most, and a few for addresses and the counter.
  EXPECT_LE(static_cast<int>(loop.size()), tile.fmas + tile.load_instructions + tile.rows + 6) << shown;
}

INSTANTIATE_TEST_SUITE_P(Targets, Tiles,
                         ::testing::Values(Tile{"gemm_14x2_avx512", "x86-64-v4", 28, 2, 14, "vfmadd...ps.*%zmm",
                                                "vmovup[sd]\\s.*\\(.*%zmm", "%rsp"},
                                           Tile{"gemm_6x2_avx2", "x86-64-v3", 12, 2, 6, "vfmadd...ps.*%ymm",
                                                "vmovup[sd]\\s.*\\(.*%ymm", "%rsp"},
                                           Tile{"gemm_8x3_neon", "aarch64", 24, 2, 8, "\\bfmla\\b",
                                                "\\bld(r|p|ur)\\s+q", "\\[sp"}),
                         [](const auto& info) { return info.param.kernel; });

TEST(TileKernels, ComputeWhatTheInterpreterDoes) {
  std::vector<Case> cases;
  for (const char* name : {"gemm_14x2_avx512", "gemm_6x2_avx2", "gemm_8x3_neon"})
    cases.push_back({kernel_of_text(name), {{3, 17}}});
  expect_as_interpreted(cases, TargetInfo::host());
}

}  // namespace
}  // namespace cuvil::backends::testing
