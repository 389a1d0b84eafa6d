// Constructors: types, broadcasting, folding.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/kernel/interpret.h"
#include "core/kernel/parse.h"
#include "core/kernel/scalar.h"

namespace cuvil::kernel {
namespace {

constexpr Type kF32{DType::f32, 1}, kI32{DType::i32, 1}, kI8{DType::i8, 1}, kU8{DType::u8, 1}, kF16{DType::f16, 1};

int64_t int_of(const Expr& e) {
  EXPECT_EQ(e->op, Op::const_int) << print(e);
  return e->int_value;
}
double float_of(const Expr& e) {
  EXPECT_EQ(e->op, Op::const_float) << print(e);
  return e->float_value;
}
Expr i32(int64_t v) { return const_int(kI32, v); }
Expr f32(double v) { return const_float(kF32, v); }

TEST(Constructors, ConstantsHoldWhatTheirTypeHolds) {
  EXPECT_EQ(int_of(const_int(kI8, 300)), 44);
  EXPECT_EQ(int_of(const_int(kU8, -1)), 255);
  EXPECT_EQ(int_of(const_int(kBool, 7)), 1);
  EXPECT_EQ(float_of(f32(0.1)), static_cast<double>(0.1f));
  EXPECT_EQ(float_of(const_float(kF16, 2049)), 2048);
  EXPECT_TRUE(std::isinf(float_of(const_float(kF16, 65520))));
  EXPECT_EQ(int_of(constant(kI32, 1e20)), std::numeric_limits<int32_t>::max());
  EXPECT_THROW(const_int(kF32, 1), Error);
  EXPECT_THROW(const_float(kI32, 1), Error);
}

TEST(Constructors, IntegersWrapAndDivideTotally) {
  const int64_t smallest = std::numeric_limits<int32_t>::min();
  EXPECT_EQ(int_of(i32(smallest) / i32(-1)), smallest);
  EXPECT_EQ(int_of(i32(smallest) % i32(-1)), 0);
  EXPECT_EQ(int_of(floordiv(i32(smallest), i32(-1))), smallest);
  EXPECT_EQ(int_of(i32(7) / i32(0)), 0);
  EXPECT_EQ(int_of(i32(7) % i32(0)), 0);
  EXPECT_EQ(int_of(floordiv(i32(-7), i32(0))), 0);
  EXPECT_EQ(int_of(i32(2147483647) + i32(1)), smallest);
  EXPECT_EQ(int_of(make(Op::neg, {i32(smallest)})), smallest);
  EXPECT_EQ(int_of(make(Op::abs, {i32(smallest)})), smallest);
  EXPECT_EQ(int_of(i32(-7) / i32(2)), -3);
  EXPECT_EQ(int_of(floordiv(i32(-7), i32(2))), -4);
  EXPECT_EQ(int_of(i32(-7) % i32(2)), 1);
  EXPECT_EQ(int_of(i32(7) % i32(-2)), -1);
  EXPECT_EQ(int_of(floordiv(i32(7), i32(-2))), -4);
  EXPECT_EQ(int_of(const_int(kU8, 200) * const_int(kU8, 2)), 144);
}

TEST(Constructors, ShiftsPastTheWidth) {
  EXPECT_EQ(int_of(make(Op::shl, {i32(1), i32(32)})), 0);
  EXPECT_EQ(int_of(make(Op::shl, {i32(1), i32(-1)})), 0);
  EXPECT_EQ(int_of(make(Op::shr, {i32(-5), i32(40)})), -1);
  EXPECT_EQ(int_of(make(Op::shr, {i32(-5), i32(1)})), -3);
  EXPECT_EQ(int_of(make(Op::shr, {const_int(kU8, 200), const_int(kU8, 9)})), 0);
  EXPECT_EQ(int_of(make(Op::shl, {const_int(kI8, 64), const_int(kI8, 1)})), -128);
}

TEST(Constructors, FloatsFollowIeee) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isnan(float_of(min(f32(nan), f32(1)))));
  EXPECT_TRUE(std::isnan(float_of(max(f32(1), f32(nan)))));
  EXPECT_EQ(int_of(f32(nan) == f32(nan)), 0);
  EXPECT_EQ(int_of(f32(nan) != f32(nan)), 1);
  EXPECT_EQ(float_of(f32(1) / f32(0)), inf);
  EXPECT_EQ(float_of(f32(-7) % f32(2)), 1);
  EXPECT_EQ(float_of(make(Op::round, {f32(2.5)})), 2);
  EXPECT_EQ(float_of(make(Op::round, {f32(-3.5)})), -4);
  EXPECT_TRUE(std::signbit(float_of(make(Op::neg, {f32(0)}))));
  // One rounding: 1 + 2^-24 squared minus 1.
  const float x = 1.0f + 0x1p-12f;
  EXPECT_EQ(float_of(fma(f32(x), f32(x), f32(-1))), std::fma(x, x, -1.0f));
  EXPECT_NE(float_of(fma(f32(x), f32(x), f32(-1))), float_of(f32(x) * f32(x) + f32(-1)));
}

TEST(Constructors, CastsSaturate) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(int_of(cast(kU8, f32(-1.5))), 0);
  EXPECT_EQ(int_of(cast(kU8, f32(300))), 255);
  EXPECT_EQ(int_of(cast(kI8, f32(-128.9))), -128);
  EXPECT_EQ(int_of(cast(kI32, f32(3e9))), 2147483647);
  EXPECT_EQ(int_of(cast(kI32, f32(nan))), 0);
  EXPECT_EQ(int_of(cast(kIndex, f32(-1e30))), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(int_of(cast(kI8, i32(200))), -56);
  EXPECT_EQ(int_of(cast(kBool, f32(0.25))), 1);
  EXPECT_EQ(int_of(cast(kBool, f32(nan))), 1);
  EXPECT_EQ(float_of(cast(kF32, Expr((int64_t{1} << 53) + 1))), 0x1p53);
  // Rounded once: through f32 this would become 0x1.02p24.
  EXPECT_EQ(float_of(cast({DType::bf16, 1}, Expr((int64_t{0x101} << 16) + 1))), 0x1.02p24);
  EXPECT_EQ(float_of(cast({DType::bf16, 1}, Expr(int64_t{0x101} << 32))), 0x1.00p40);
  EXPECT_EQ(float_of(cast({DType::bf16, 1}, Expr((int64_t{0x101} << 32) + 1))), 0x1.02p40);
}

TEST(Constructors, HalfPrecisionRoundsOnce) {
  auto f16 = [](double v) { return const_float(kF16, v); };
  EXPECT_EQ(float_of(f16(2048) + f16(1)), 2048);
  EXPECT_EQ(float_of(f16(2048) + f16(3)), 2052);
  EXPECT_EQ(float_of(f16(0x1p-24) / f16(2)), 0);
  EXPECT_EQ(float_of(f16(0x1.8p-24) + f16(0)), 0x1p-23);
  // a * b + c with a tie that only the exact sum breaks.
  EXPECT_EQ(float_of(fma(f16(0x1p-14), f16(0x1p-14), f16(1 + 0x1p-10))), 1 + 0x1p-10);
  EXPECT_EQ(float_of(fma(f16(2048), f16(1 + 0x1p-10), f16(0x1p-24))), 2050);
  EXPECT_EQ(float_of(fma(f16(33), f16(62.09375), f16(0x1p-24))), 2050);  // 2049.09375
}

TEST(Constructors, IntegersTakeTheOtherOperandsType) {
  const Var x = make_var("x", kF32), v = make_var("v", {DType::i32, 8});
  EXPECT_EQ((Expr(x) * 2).type(), kF32);
  EXPECT_EQ((2 * Expr(x))->args[0]->op, Op::const_float);
  const Expr sum = Expr(v) + 1;
  EXPECT_EQ(sum.type(), (Type{DType::i32, 8}));
  EXPECT_EQ(sum->args[1]->op, Op::broadcast);
  EXPECT_EQ(select(const_int(kBool, 1), 1, Expr(x)).type(), kF32);
  EXPECT_THROW(Expr(x) + Expr(v), Error);
  EXPECT_EQ((Expr(v) < 3).type(), (Type{DType::boolean, 8}));
}

TEST(Constructors, VectorsOfConstantsFold) {
  const Expr e = broadcast(f32(2), 4) * broadcast(f32(3), 4);
  EXPECT_EQ(e->op, Op::broadcast);
  EXPECT_EQ(float_of(lane(e, 3)), 6);
  EXPECT_EQ(int_of(bitcast(kI32, f32(1))), 0x3f800000);
}

TEST(Constructors, IndexArithmeticDropsNeutralElements) {
  const Var i = make_var("i");
  EXPECT_TRUE(equal(Expr(i) * 1 + 0, Expr(i)));
  EXPECT_TRUE((Expr(i) * 0).is_const_int(0));
  EXPECT_TRUE((Expr(i) % 1).is_const_int(0));
  EXPECT_TRUE(equal(ramp(i, 0, 4), broadcast(i, 4)));
}

TEST(Constructors, Evaluate) {
  const Var n = make_var("N"), m = make_var("M");
  const std::pair<Var, int64_t> values[] = {{n, 100}};
  EXPECT_EQ(evaluate(ceildiv(n, 14) * 2, values), 16);
  EXPECT_EQ(evaluate(Expr(n) + m, values), std::nullopt);
}

TEST(Constructors, ScratchBytesIsTheLargestPhase) {
  Builder b("k");
  const Expr n = b.dim("N");
  b.phase(1, [&](Expr) { b.alloc("a", kF32, {n}, Space::scratch); });
  b.phase(1, [&](Expr) {
    b.alloc("a", kF32, {3}, Space::scratch);
    b.alloc("r", kF32, {300}, Space::reg);
    b.alloc("b", kU8, {65}, Space::scratch);
  });
  const Kernel k = b.finish();
  for (const auto& [size, bytes] : {std::pair<int64_t, int64_t>{1, 192}, {1000, 4032}}) {
    const std::pair<Var, int64_t> values[] = {{k.dims[0], size}};
    EXPECT_EQ(evaluate(scratch_bytes(k), values), bytes);
  }
}

TEST(Rewrite, KeepsUnchangedTreesAndSharing) {
  const Var i = make_var("i"), j = make_var("j");
  Expr e = Expr(i);
  for (int d = 0; d < 60; ++d) e = make(Op::add, {e, e * 3});  // 2^60 paths
  int calls = 0;
  const Expr same = rewrite(e, [&](const Expr& x) {
    ++calls;
    return x;
  });
  EXPECT_EQ(same.get(), e.get());
  EXPECT_LT(calls, 200);
  const std::pair<Var, Expr> values[] = {{i, Expr(j)}};
  EXPECT_FALSE(equal(substitute(e, values), e));
  const std::string text = print(e);
  EXPECT_LT(text.size(), 3000u);
}

}  // namespace
}  // namespace cuvil::kernel
