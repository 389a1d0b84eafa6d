#include "core/base/dim.h"

#include <gtest/gtest.h>

#include <random>

#include "core/base/error.h"

namespace cuvil {
namespace {

const Dim N = Dim::symbol("N"), H = Dim::symbol("H"), W = Dim::symbol("W");

TEST(Dim, SumsAndProductsHaveOneForm) {
  EXPECT_EQ((N + H) * (N - H), N * N - H * H);
  EXPECT_EQ((2 * N + 1).str(), "2*N+1");
  EXPECT_EQ((1 + N + N).str(), "2*N+1");
  EXPECT_EQ((N - N).str(), "0");
  EXPECT_EQ((H * N * 3 - 1).str(), "3*H*N-1");
  EXPECT_EQ((3 - N).str(), "-N+3");
  EXPECT_TRUE((N - N + 4).is_const());
  EXPECT_EQ((N - N + 4).value(), 4);
  EXPECT_FALSE(N == H);
}

TEST(Dim, FloordivAndCeildiv) {
  EXPECT_EQ(floordiv(Dim(7), 2).value(), 3);
  EXPECT_EQ(floordiv(Dim(-7), 2).value(), -4);
  EXPECT_EQ(floordiv(4 * N + 3, 4), N);
  EXPECT_EQ(floordiv(4 * N + 8, 4), N + 2);
  EXPECT_EQ(floordiv(17 * N, 16), N + floordiv(N, 16));
  EXPECT_EQ(floordiv(4 * N + 6, 8), floordiv(2 * N + 3, 4));
  EXPECT_EQ(floordiv(floordiv(N, 2) + 3, 4), floordiv(N + 6, 8));
  EXPECT_EQ(ceildiv(N, 16).str(), "ceildiv(N, 16)");
  EXPECT_EQ(0 - floordiv(0 - N, 16), ceildiv(N, 16));
  EXPECT_EQ(floordiv(N * H * W, H * W), N);
  EXPECT_EQ(floordiv(N * H + N, H + 1), N);
  EXPECT_EQ(floordiv(N * H + W, H), N + floordiv(W, H));
  EXPECT_EQ(floordiv(2 * N * H, 4 * H), floordiv(N, 2));
  EXPECT_EQ(floordiv(mod(N, 4), 4), Dim(0));
  EXPECT_EQ(round_up(16 * N, 16), 16 * N);
}

TEST(Dim, Mod) {
  EXPECT_EQ(mod(Dim(-7), 4).value(), 1);
  EXPECT_EQ(mod(8 * N + 3, 4).value(), 3);
  EXPECT_EQ(mod(5 * N, 4), mod(N, 4));
  EXPECT_EQ(mod(mod(N, 8) + 1, 4), mod(N + 1, 4));
  EXPECT_EQ(mod(2 * N, 4), 2 * mod(N, 2));
  EXPECT_EQ(mod(N * H, N).value(), 0);
  EXPECT_EQ(mod(mod(N, 4), 8), mod(N, 4));
}

TEST(Dim, MinAndMax) {
  EXPECT_EQ(max(N, 0), N);
  EXPECT_EQ(min(N, 0), Dim(0));
  EXPECT_EQ(max(N + 2, N), N + 2);
  EXPECT_EQ(max(max(N, H), W), max(W, max(H, N)));
  EXPECT_EQ(min(N, N), N);
  EXPECT_EQ(max(max(N, 2), 5).str(), "max(N, 5)");
}

TEST(Dim, Bounds) {
  EXPECT_EQ((2 * N + 1).lower_bound(), 1);
  EXPECT_EQ((1 - N).lower_bound(), std::nullopt);
  EXPECT_EQ((1 - N).upper_bound(), 1);
  EXPECT_EQ(mod(N, 8).upper_bound(), 7);
  EXPECT_EQ(max(N, 3).lower_bound(), 3);
  EXPECT_EQ(min(N, 3).upper_bound(), 3);
  EXPECT_EQ(N.upper_bound(), std::nullopt);
}

TEST(Dim, DivisibleBy) {
  EXPECT_TRUE((6 * N + 12).divisible_by(6));
  EXPECT_FALSE((6 * N + 11).divisible_by(6));
  EXPECT_TRUE((round_up(N, 16) * 2).divisible_by(32));
  EXPECT_TRUE(max(4 * N, Dim(8)).divisible_by(4));
  EXPECT_TRUE(Dim(0).divisible_by(7));
}

TEST(Dim, OverflowIsAShapeErrorThatShowsTheExpression) {
  const Dim big = Dim(int64_t{1} << 62);
  try {
    (void)(big * N * 2);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), CUVIL_SHAPE_ERROR);
    EXPECT_NE(std::string(e.what()).find("(4611686018427387904*N)*(2)"), std::string::npos) << e.what();
  }
  EXPECT_THROW((void)(big + big), Error);
  EXPECT_THROW((void)(Dim(INT64_MIN) - 1), Error);
  EXPECT_THROW((void)(0 - Dim(INT64_MIN)), Error);
  EXPECT_THROW((void)floordiv(N, 0), Error);
  EXPECT_THROW((void)mod(N, -2), Error);
  EXPECT_EQ((big * N).evaluate({{"N", 2}}), std::nullopt);
  EXPECT_EQ((N * H - N * H + 1).evaluate({}), 1);
  EXPECT_THROW(Dim::symbol("2x"), Error);
}

TEST(Dim, EvaluateAndSubstitute) {
  const Dim d = floordiv(N + 2 * H, W) * 3 - mod(N, 5);
  EXPECT_EQ(d.evaluate({{"N", 7}, {"H", 3}, {"W", 2}}), 16);
  EXPECT_EQ(d.evaluate({{"N", 7}, {"H", 3}, {"W", 0}}), std::nullopt);
  EXPECT_EQ(d.evaluate({{"N", 7}}), std::nullopt);
  EXPECT_EQ(d.substitute({{"N", 7}, {"H", 3}, {"W", 2}}).value(), 16);
  EXPECT_EQ(d.substitute({{"N", H}}), floordiv(3 * H, W) * 3 - mod(H, 5));
  EXPECT_EQ(d.symbols(), (std::vector<std::string>{"H", "N", "W"}));
}

TEST(Dim, ViewRebuildsTheValue) {
  const Dim d = 2 * N * H + floordiv(N, 3) - max(H, W) + 4;
  const Dim::View v = d.view();
  ASSERT_EQ(v.kind, Dim::Kind::add);
  Dim sum = 0;
  for (const Dim& o : v.operands) sum = sum + o;
  EXPECT_EQ(sum, d);
  EXPECT_EQ((2 * N).view().kind, Dim::Kind::mul);
  EXPECT_EQ((2 * N).view().operands.size(), 2u);
  EXPECT_EQ(N.view().name, "N");
}

TEST(Dim, ShapeText) {
  EXPECT_EQ(to_string({N, 3, 2 * H}), "[N, 3, 2*H]");
  EXPECT_EQ(num_elements({N, 3, 2 * H}), 6 * N * H);
  EXPECT_TRUE(is_static({1, 2}));
  EXPECT_FALSE(is_static({1, N}));
}

// Random trees: simplification keeps the value, and the text reads back to the same Dim.
TEST(Dim, RandomExpressionsKeepTheirValueAndRoundTrip) {
  std::mt19937 random(1);
  const auto pick = [&](int n) { return static_cast<int>(random() % n); };
  for (int round = 0; round < 3000; ++round) {
    const std::map<std::string, int64_t> values{{"N", pick(40)}, {"H", 1 + pick(9)}, {"W", 1 + pick(30)}};
    struct Pair {
      Dim dim;
      int64_t value;
    };
    std::vector<Pair> pool{{N, values.at("N")}, {H, values.at("H")}, {W, values.at("W")}};
    for (int i = 0; i < 8; ++i) {
      const Pair a = pool[pick(pool.size())];
      Pair b = pool[pick(pool.size())];
      if (pick(2)) b = {Dim(pick(33) - 8), 0}, b.value = b.dim.value();
      Pair r = a;
      int op = pick(7);
      // A divisor has to be positive whatever the symbols; of those at hand only H and W are.
      if (op > 4 && !(b.dim == H || b.dim == W || b.dim.lower_bound().value_or(0) > 0)) op -= 3;
      const int64_t q = b.value > 0 ? a.value / b.value - (a.value % b.value < 0) : 0;
      switch (op) {
        case 0:
          r = {a.dim + b.dim, a.value + b.value};
          break;
        case 1:
          r = {a.dim - b.dim, a.value - b.value};
          break;
        case 2:
          r = {a.dim * b.dim, a.value * b.value};
          break;
        case 3:
          r = {min(a.dim, b.dim), std::min(a.value, b.value)};
          break;
        case 4:
          r = {max(a.dim, b.dim), std::max(a.value, b.value)};
          break;
        case 5:
          r = {floordiv(a.dim, b.dim), q};
          break;
        case 6:
          r = {mod(a.dim, b.dim), a.value - q * b.value};
          break;
      }
      if (r.dim.str().size() > 200 || std::abs(r.value) > 100000) continue;
      pool.push_back(r);
      const auto value = r.dim.evaluate(values);
      ASSERT_EQ(value, r.value) << r.dim.str();
      ASSERT_LE(r.dim.lower_bound().value_or(INT64_MIN), r.value) << r.dim.str();
      ASSERT_GE(r.dim.upper_bound().value_or(INT64_MAX), r.value) << r.dim.str();
      const auto again = Dim::parse(r.dim.str());
      ASSERT_TRUE(again) << r.dim.str();
      ASSERT_EQ(*again, r.dim) << again->str();
      ASSERT_EQ(again->str(), r.dim.str());
    }
  }
}

TEST(Dim, ParseReadsWhatPeopleWrite) {
  EXPECT_EQ(Dim::parse(" 2 * N + 1 "), 2 * N + 1);
  EXPECT_EQ(Dim::parse("ceildiv(H, 16)"), ceildiv(H, 16));
  EXPECT_EQ(Dim::parse("max(N, H, 3)"), max(N, max(H, 3)));
  EXPECT_EQ(Dim::parse("-(N-3)*2"), 6 - 2 * N);
  EXPECT_EQ(Dim::parse("-(3)"), Dim(-3));
  EXPECT_EQ(Dim::parse("-9223372036854775808"), Dim(INT64_MIN));
}

TEST(Dim, ParseRefusesAndIsBounded) {
  for (const char* bad : {"", "-", "2N", "N+", "N N", "(N", "N)", "floordiv(N)", "floordiv(N, 0)", "f(N, 2)", "min(N)",
                          "9223372036854775808", "N*9223372036854775807*2", "1.5", "a$", "max(,)", "--N"})
    EXPECT_EQ(Dim::parse(bad), std::nullopt) << bad;
  EXPECT_EQ(Dim::parse(std::string(4000, '(')), std::nullopt);
  EXPECT_EQ(Dim::parse(std::string(100000, '1')), std::nullopt);
  std::string power = "(a+b+c+d)";
  for (int i = 0; i < 300; ++i) power += "*(a+b+c+d)";
  EXPECT_EQ(Dim::parse(power), std::nullopt);
  std::string nested = "N";
  for (int i = 0; i < 60; ++i) nested = "max(mod(" + nested + ", 7)*H, 2)";
  (void)Dim::parse(nested);
  std::mt19937 random(2);
  const std::string alphabet = "NHmaxindofrv()+-*, 0123456789";
  for (int i = 0; i < 20000; ++i) {
    std::string s;
    for (int k = random() % 24; k > 0; --k) s += alphabet[random() % alphabet.size()];
    if (const auto d = Dim::parse(s)) {
      EXPECT_EQ(Dim::parse(d->str()), *d) << s;
    }
  }
}

}  // namespace
}  // namespace cuvil
