// The text form: errors name line, column, what was expected and what was found; everything round-trips.
#include "core/kernel/parse.h"

#include <gtest/gtest.h>

#include <random>

#include "core/base/error.h"
#include "core/kernel/verify.h"
#include "tests/kernel/kernel_texts.h"
#include "tests/kernel/random_kernel.h"

namespace cuvil::kernel::testing {
namespace {

std::string in_body(const std::string& statements) {
  return "kernel @k<%N>(%a: f32[%N, 16] in, %i: i64[%N] in, %c: f32[%N] out) {\n  phase %t in 0 .. %N {\n" +
         statements + "\n  }\n}\n";
}
std::string error_of(const std::string& text) {
  try {
    parse(text);
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), CUVIL_MODEL_ERROR) << e.what();
    return e.what();
  }
  return "(no error)";
}
void expect_error(const std::string& statements, const std::string& part) {
  EXPECT_NE(error_of(in_body(statements)).find(part), std::string::npos)
      << statements << "\n  gives " << error_of(in_body(statements));
}

TEST(Parse, ErrorsSayWhereAndWhat) {
  EXPECT_NE(error_of("").find("line 1, column 1: expected 'kernel', found the end of the text"), std::string::npos);
  EXPECT_NE(error_of("kernel @k(%a: f32[4) in) {}").find("line 1, column 20: expected ']', found ')'"),
            std::string::npos)
      << error_of("kernel @k(%a: f32[4) in) {}");
  expect_error("%c[%t] = ", "line 4, column 3: expected an expression, found '}'");
  expect_error("%c[%t] = %nothing", "line 3, column 10: %nothing is not visible here");
  expect_error("let %t = 1", "column 5: %t is visible here already");
  expect_error("%c[%t] = 1", "line 3, column 1: buffer c holds f32, the value is i64");
}

TEST(Parse, RefusesWhatIsNotInTheLanguage) {
  expect_error("%c[%t] = 1.0 +", "expected an expression");
  expect_error("%c[%t] = 1.0 + 2", "operands of add differ: f32 and i64");
  expect_error("%c[%t, 0] = 1.0", "1 dimensions and 2 indices");
  expect_error("%c[1.0] = 1.0", "indexed by f32");
  expect_error("%c[%t] = %a[%t, 0 : 16]", "the place has 1 lanes, the value is f32x16");
  expect_error("%c[%t] = exp(1)", "exp is not defined for i64");
  expect_error("%c[%t] = sqrt(2)", "sqrt is not defined for i64");
  expect_error("%c[%t] = foo(2.0)", "expected an expression, found 'foo'");
  expect_error("%c[%t] = f32x16(2.0)", "expected an expression");
  expect_error("let %x = i8(300)", "i8 cannot hold 300");
  expect_error("let %x = u8(-1)", "u8 cannot hold");
  expect_error("let %x = 9223372036854775808", "i64 cannot hold");
  expect_error("let %x = 1e999", "f32 cannot hold");
  expect_error("let %x = broadcast(1.0, 65)", "a number of lanes lies between");
  expect_error("let %x = broadcast(1.0, 1)", "broadcast from f32 to f32");
  expect_error("let %x = lane(%a[%t, 0 : 4], 4)", "lane 4 of f32x4");
  expect_error("let %x = shuffle(%a[%t, 0 : 4], [8])", "shuffle picks lane 8");
  expect_error("let %x: f32 = 1", "is i64, not f32");
  expect_error("let %x = bitcast(i64, 1.0)", "bitcast from f32 to i64");
  expect_error("let %x = (#0 = 1.0) + #1", "#1 is not named before");
  expect_error("if 1 { }", "a condition is a scalar bool");
  expect_error("fail 99999999999", "a fail code lies between");
  expect_error("prefetch %a[0, 0] level 3", "a cache level lies between");
  expect_error("alloc %x: f32[4] global", "expected scratch, reg or shared");
  expect_error("alloc %x: f32[1,1,1,1,1,1,1,1,1,1,1,1,1] reg", "at most 12 dimensions");
  expect_error("for %k in 0 .. 4 step 0 { }", "a step lies between");
  expect_error("let %x = $", "unexpected character");
  EXPECT_NE(error_of(in_body("") + "x").find("expected the end of the text"), std::string::npos);
}

TEST(Parse, DepthIsBounded) {
  std::string deep = in_body("let %x = " + std::string(100000, '(') + "1");
  EXPECT_NE(error_of(deep).find("levels deep"), std::string::npos);
  std::string chain = "%c[%t] = %a[0, 0]";
  for (int i = 0; i < 100000; ++i) chain += " + %a[0, 0]";
  EXPECT_NE(error_of(in_body(chain)).find("levels deep"), std::string::npos);
  std::string blocks;
  for (int i = 0; i < 100000; ++i) blocks += "{";
  EXPECT_NE(error_of(in_body(blocks)).find("levels deep"), std::string::npos);
  std::string minus = "let %x = " + std::string(100000, '-') + "%t";
  EXPECT_NE(error_of(in_body(minus)).find("levels deep"), std::string::npos);
}

TEST(Parse, AnyTruncationOfAKernelIsAnError) {
  const std::string text = kernel_text("attention");
  for (size_t n = 0; n + 2 < text.size(); n += 7) EXPECT_NE(error_of(text.substr(0, n)), "(no error)") << n;
}

void expect_round_trip(const Kernel& k, const std::string& what) {
  const std::string once = print(k);
  const Kernel again = parse(once);
  verify(again);
  EXPECT_EQ(print(again), once) << what;
}

TEST(Print, EveryConstructRoundTrips) {
  expect_round_trip(parse(in_body(R"(
    let %a1 = -0.0
    let %a2 = -inf
    let %a4 = nan
    let %a5 = 1.17549435e-38
    let %a6 = f64(0.1)
    let %a7 = f16(-inf)
    let %a9 = -9223372036854775808
    let %b1 = u64(18446744073709551615)
    let %b2 = i8(-128) - i8(-1)
    let %b3 = not(true)
    let %b4 = 1 - (2 - 3) - 4 * (5 + %t) % 3
    let %b5 = (1 < 2) & (3 == 4) | true ^ false
    let %b6 = ramp(%t, 2, 8)
    let %b7 = %i[ramp(0, 1, 4) % %N ? lane_mask(%t, %N, 4)]
    let %b8 = shuffle(%a[%t, 0 : 4], %a[%t, 4 : 4], [7, 0, 0, 1])
    let %b9 = lane(%b8, 1) + reduce_max(%b8)
    let %c1 = bitcast(i8x16, cast(i32, %b8))
    let %c2 = dot(broadcast(i32(3), 4), %c1, %c1)
    let %c3 = select(%t > 0, %b8, 1.0)
    let %c4 = -%b9 == neg(1.0)
    alloc %r: f32x4[2, 3] reg
    alloc %s: u8[%N * 2] scratch strides [2]
    %r[0, 1 ? true] = %b8
    for %k in 1 .. %N step 3 {
      prefetch %a[%k, 0] level 2
      if %k == 2 { fail -3 } else { }
    }
    for %k in 0 .. %N vector { %c[%k ? %k > 3] = %a[%k, 3] }
    { let %z = 1 }
    { let %z = 2 }
    for %x in 0 .. 4 gpu_thread_x { barrier }
  )")),
                    "all");
}

TEST(Print, NamesAreMadeUnique) {
  Builder b("k");
  const Buffer c = b.param("c d", {DType::i64, 1}, {4}, Access::out);
  b.phase(1,
          [&](Expr) { b.loop("i", 2, [&](Expr i) { b.loop("i", 2, [&](Expr j) { b.store(c, {i * 2 + j}, i); }); }); });
  const std::string text = print(b.finish());
  EXPECT_NE(text.find("%c_d[%i * 2 + %i_2] = %i\n"), std::string::npos) << text;
  EXPECT_EQ(print(parse(text)), text);
}

TEST(Print, LargeRepeatedValuesAreWrittenOnce) {
  Builder b("k");
  const Buffer a = b.param("a", {DType::f32, 1}, {1}, Access::in), c = b.param("c", {DType::f32, 1}, {1}, Access::out);
  b.phase(1, [&](Expr) {
    Expr e = load(a, {0});
    for (int i = 0; i < 40; ++i) e = e * e + load(a, {0});
    b.store(c, {0}, e);
  });
  const Kernel k = b.finish();
  EXPECT_LT(print(k).size(), 4000u);
  expect_round_trip(k, "shared");
}

TEST(Print, RandomKernelsRoundTrip) {
  for (uint64_t seed = 0; seed < 60; ++seed)
    expect_round_trip(random_kernel(seed, {.halves = true, .transcendentals = true}).kernel, std::to_string(seed));
}

TEST(Parse, DamagedKernelsGiveTypedErrors) {
  const std::string text = kernel_text("winograd_f43");
  std::mt19937 random(7);
  for (int i = 0; i < 1000; ++i) {
    std::string damaged = text;
    for (int j = 0; j < 1 + i % 3; ++j) damaged[random() % damaged.size()] = static_cast<char>(random() % 256);
    try {
      const std::string once = print(parse(damaged));
      ASSERT_EQ(print(parse(once)), once);
    } catch (const Error& e) {
      ASSERT_EQ(e.status(), CUVIL_MODEL_ERROR) << e.what();
    }
  }
}

}  // namespace
}  // namespace cuvil::kernel::testing
