// The accuracy of expanded math: expressions evaluated over f32 bit patterns against libm in double.
//
// math_test samples every 2,000th bit pattern or so and the edges; --full (or an argument --stride=N) goes over all of
// them. Each function prints its largest error, which docs/numerics.md lists.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>

#include "core/kernel/interpret.h"
#include "core/kernel/transform.h"
#include "tests/kernel_transform/flat_evaluator.h"

namespace cuvil::kernel {
namespace {

uint32_t g_stride = 2003;  // a prime: hits all mantissa patterns

float from_bits(uint32_t b) {
  float f;
  std::memcpy(&f, &b, 4);
  return f;
}

/// |got - exact| in units of the last place of `exact` rounded to f32; below the normals the unit stays 2^-149.
double ulp_error(float got, double exact) {
  const float rounded = static_cast<float>(exact);
  if (std::isnan(exact)) return std::isnan(got) ? 0 : HUGE_VAL;
  if (std::isinf(rounded) || std::isinf(got)) {
    if (rounded == got) return 0;
    // Overflow one step early or late is an error of a fraction of an ulp.
    const double max = std::numeric_limits<float>::max();
    if (std::fabs(exact) < max || std::isnan(got) || std::signbit(got) != (exact < 0)) {
      return std::isinf(got) && std::fabs(exact) > max * (1 - 0x1p-22) && std::signbit(got) == (exact < 0) ? 1
                                                                                                           : HUGE_VAL;
    }
    return (std::fabs(exact) - std::fabs(static_cast<double>(got))) / 0x1p104;
  }
  if (got == 0 && exact == 0 && std::signbit(got) != std::signbit(exact)) return HUGE_VAL;
  const int e = exact == 0 ? -126 : std::max(std::ilogb(exact), -126);
  return std::fabs(got - exact) / std::ldexp(1.0, e - 23);
}

struct Case {
  Op op;
  std::function<double(double)> exact;
  double bound;        ///< ulp
  double flushes = 0;  ///< results of smaller magnitude may be 0
};

double exact_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

const Case kCases[] = {
    {Op::exp, [](double x) { return std::exp(x); }, 2},
    {Op::log, [](double x) { return std::log(x); }, 2},
    {Op::tanh, [](double x) { return std::tanh(x); }, 5.5},
    {Op::erf, [](double x) { return std::erf(x); }, 5.5},
    {Op::sigmoid, exact_sigmoid, 3, 0x1p-126},
    {Op::sin, [](double x) { return std::sin(x); }, 2},
    {Op::cos, [](double x) { return std::cos(x); }, 2},
    {Op::tan, [](double x) { return std::tan(x); }, 4},
    {Op::asin, [](double x) { return std::asin(x); }, 3},
    {Op::acos, [](double x) { return std::acos(x); }, 3},
    {Op::atan, [](double x) { return std::atan(x); }, 3},
    {Op::sinh, [](double x) { return std::sinh(x); }, 3},
    {Op::cosh, [](double x) { return std::cosh(x); }, 3},
    {Op::asinh, [](double x) { return std::asinh(x); }, 1},
    {Op::acosh, [](double x) { return std::acosh(x); }, 1},
    {Op::atanh, [](double x) { return std::atanh(x); }, 1},
};

class Math : public testing::TestWithParam<Case> {};

TEST_P(Math, ErrorIsWithinTheBound) {
  const Case& c = GetParam();
  const Var x = make_var("x", Type{DType::f32, 1});
  FlatEvaluator f(expand_math(make(c.op, {x})), {x});
  double worst = 0, worst_x = 0;
  std::vector<float> in, out(FlatEvaluator::kBlock);
  const auto flush = [&] {
    f.run({in.data()}, static_cast<int>(in.size()), out.data());
    for (size_t i = 0; i < in.size(); ++i) {
      const double exact = c.exact(static_cast<double>(in[i]));
      if (std::fabs(exact) < c.flushes && out[i] == 0) continue;
      const double e = ulp_error(out[i], exact);
      if (e > worst) worst = e, worst_x = in[i];
    }
    in.clear();
  };
  const auto add = [&](uint32_t b) {
    in.push_back(from_bits(b));
    if (in.size() == FlatEvaluator::kBlock) flush();
  };
  for (uint64_t b = 0; b < (uint64_t{1} << 32); b += g_stride) add(static_cast<uint32_t>(b));
  // Both signs of: zero, the smallest, the largest denormal, the smallest normal, 1 and neighbours, the largest, inf,
  // NaN; where the expansions change branch.
  const float edges[] = {0.5f,    1.0f,    0x1p-10f, 88.0f,       88.7228394f, 88.72284f,
                         87.68f,  103.9f,  104.5f,   8.01750374f, 3.64888692f, 0x1p46f,
                         0x1p68f, 0x1p90f, 0x1p112f, 3.14159265f, 1.57079633f};
  for (uint32_t sign : {0u, 0x80000000u}) {
    for (uint32_t b : {0u, 1u, 2u, 0x007fffffu, 0x00800000u, 0x7f7fffffu, 0x7f800000u, 0x7fc00000u, 0x7f800001u})
      add(sign | b);
    for (float e : edges) {
      uint32_t b;
      std::memcpy(&b, &e, 4);
      for (int d = -300; d <= 300; ++d) add(sign | (b + static_cast<uint32_t>(d)));
    }
  }
  if (!in.empty()) flush();
  std::printf("%-8s %3d operations, largest error %.3f ulp at %.9g\n", std::string(info(c.op).text).c_str(),
              f.operations(), worst, worst_x);
  EXPECT_LE(worst, c.bound) << "at " << worst_x;
}

INSTANTIATE_TEST_SUITE_P(All, Math, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(kernel::info(test.param.op).text); });

/// Results of f64 expansions by the interpreter.
std::vector<double> values_f64(Op op, const std::vector<double>& x) {
  Builder b("values");
  const auto n = static_cast<int64_t>(x.size());
  const Type f64{DType::f64, 1};
  const Buffer in = b.param("in", f64, {Expr(n)}, Access::in), out = b.param("out", f64, {Expr(n)}, Access::out);
  b.phase(1, [&](Expr) { b.loop("i", Expr(n), [&](Expr i) { b.store(out, {i}, make(op, {load(in, {i})})); }); });
  std::vector<double> y(x.size());
  const int64_t bytes = n * 8;
  const Argument arguments[] = {{const_cast<double*>(x.data()), bytes}, {y.data(), bytes}};
  EXPECT_EQ(interpret(expand_math(b.finish()), arguments, {}), 0);
  return y;
}

long double exact_f64(Op op, long double x) {
  switch (op) {
    case Op::exp:
      return std::exp(x);
    case Op::log:
      return std::log(x);
    case Op::tanh:
      return std::tanh(x);
    case Op::sinh:
      return std::sinh(x);
    case Op::cosh:
      return std::cosh(x);
    default:
      return 1 / (1 + std::exp(-x));
  }
}

TEST(MathF64, ErrorIsWithinTheBound) {
  std::vector<double> x{0.0,
                        -0.0,
                        1,
                        -1,
                        5e-324,
                        2.2250738585072009e-308,
                        2.2250738585072014e-308,
                        1.7e308,
                        HUGE_VAL,
                        -HUGE_VAL,
                        NAN,
                        709.78271289338397,
                        709.8,
                        -745.13,
                        -746,
                        710.4,
                        711,
                        0.34657,
                        0x1p-30};
  uint64_t state = 1;
  const auto next = [&] { return state = state * 6364136223846793005u + 1442695040888963407u; };
  for (int i = 0; i < 20000; ++i) {
    const uint64_t bits = next() ^ (next() >> 32);
    double any;
    std::memcpy(&any, &bits, sizeof any);
    x.push_back(any);
    x.push_back((static_cast<double>(next() >> 11) * 0x1p-53 - 0.5) * (i % 2 ? 1500 : 4));
    x.push_back(std::fabs(x.back()) + 0.5);
  }
  const std::pair<Op, double> bounds[] = {{Op::exp, 2},  {Op::log, 1},  {Op::sigmoid, 4},
                                          {Op::tanh, 4}, {Op::sinh, 4}, {Op::cosh, 3}};
  for (const auto& [op, bound] : bounds) {
    const std::vector<double> y = values_f64(op, x);
    double worst = 0, worst_x = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const long double exact = exact_f64(op, x[i]);
      const auto rounded = static_cast<double>(exact);
      double error;
      if (std::isnan(rounded) || std::isinf(rounded) || std::isinf(y[i]))
        error = (std::isnan(rounded) && std::isnan(y[i])) || rounded == y[i] ? 0 : HUGE_VAL;
      else if (op == Op::sigmoid && std::fabs(rounded) < 0x1p-1021)
        error = y[i] >= 0 && y[i] <= 0x1p-1021 ? 0 : HUGE_VAL;
      else
        error = static_cast<double>(std::fabs(y[i] - exact) /
                                    std::ldexp(1.0L, std::max(rounded == 0 ? -1022 : std::ilogb(rounded), -1022) - 52));
      if (error > worst) worst = error, worst_x = x[i];
    }
    std::printf("%-8s f64, largest error %.3f ulp at %.17g\n", std::string(info(op).text).c_str(), worst, worst_x);
    EXPECT_LE(worst, bound) << info(op).text << " at " << worst_x;
  }
}

TEST(MathBounded, TanhAndErfNeverExceedOne) {
  for (Op op : {Op::tanh, Op::erf}) {
    const Var x = make_var("x", Type{DType::f32, 1});
    FlatEvaluator f(expand_math(make(op, {x})), {x});
    std::vector<float> in, out(FlatEvaluator::kBlock);
    for (uint32_t b = 0x3f800000; b < 0x42000000; b += 31) {
      in.push_back(from_bits(b));
      if (in.size() < FlatEvaluator::kBlock) continue;
      f.run({in.data()}, FlatEvaluator::kBlock, out.data());
      for (int i = 0; i < FlatEvaluator::kBlock; ++i) ASSERT_LE(out[i], 1.0f) << info(op).text << " of " << in[i];
      in.clear();
    }
  }
}

TEST(MathPow, ErrorIsWithinTheBound) {
  const Var x = make_var("x", Type{DType::f32, 1}), y = make_var("y", Type{DType::f32, 1});
  FlatEvaluator f(expand_math(make(Op::pow, {x, y})), {x, y});
  std::vector<float> special;
  for (float s : {0.0f, 1e-45f, 1e-38f, 0.3f, 0.5f, 0.99999994f, 1.0f, 1.0000001f, 2.0f, 3.0f, 2.5f, 16777215.0f,
                  16777216.0f, 1e10f, 3.4028235e38f, HUGE_VALF, NAN}) {
    special.push_back(s);
    special.push_back(-s);
  }
  double worst = 0;
  float worst_x = 0, worst_y = 0;
  std::vector<float> xs, ys, out(FlatEvaluator::kBlock);
  const auto flush = [&] {
    f.run({xs.data(), ys.data()}, static_cast<int>(xs.size()), out.data());
    for (size_t i = 0; i < xs.size(); ++i) {
      const double e = ulp_error(out[i], std::pow(static_cast<double>(xs[i]), static_cast<double>(ys[i])));
      if (e > worst) worst = e, worst_x = xs[i], worst_y = ys[i];
    }
    xs.clear();
    ys.clear();
  };
  const auto add = [&](float a, float b) {
    xs.push_back(a);
    ys.push_back(b);
    if (xs.size() == FlatEvaluator::kBlock) flush();
  };
  for (float a : special)
    for (float b : special) add(a, b);
  uint64_t state = 1;
  const auto next = [&] {
    return static_cast<uint32_t>((state = state * 6364136223846793005u + 1442695040888963407u) >> 32);
  };
  const uint64_t count = g_stride == 1 ? uint64_t{1} << 30 : 2000000;
  for (uint64_t i = 0; i < count; ++i) {
    // Bases of all sizes; exponents such that the result is mostly finite, and small integers.
    const float a = from_bits(next());
    const double l = std::fabs(std::log2(std::fabs(static_cast<double>(a))));
    float b =
        static_cast<float>((static_cast<double>(next()) / 0x1p31 - 1) * 155 / (std::isfinite(l) && l > 0 ? l : 1));
    if (i % 4 == 0) b = std::nearbyint(b);
    add(a, b);
  }
  if (!xs.empty()) flush();
  std::printf("pow      %3d operations, largest error %.3f ulp at %.9g, %.9g\n", f.operations(), worst, worst_x,
              worst_y);
  EXPECT_LE(worst, 2) << "at " << worst_x << ", " << worst_y;
}

}  // namespace
}  // namespace cuvil::kernel

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    if (a == "--full") cuvil::kernel::g_stride = 1;
    if (a.rfind("--stride=", 0) == 0) cuvil::kernel::g_stride = static_cast<uint32_t>(std::atoi(a.c_str() + 9));
  }
  return RUN_ALL_TESTS();
}
