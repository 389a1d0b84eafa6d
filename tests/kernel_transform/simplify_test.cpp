#include <gtest/gtest.h>

#include "core/kernel/transform.h"

namespace cuvil::kernel {
namespace {

const Type kF32{DType::f32, 1};

/// Simplifies `e` inside nested loops 0 <= i < 8, 0 <= j < 16, 0 <= k < N and dims N, M: returns the store's index.
class InLoops : public testing::Test {
 protected:
  Builder b_{"k"};
  Expr n_ = b_.dim("n"), m_ = b_.dim("m"), i_, j_, k_;

  StmtNode simplified(const std::function<Expr()>& index, const std::function<Expr()>& value = {}) {
    const Buffer out = b_.param("out", Type{DType::i64, 1}, {n_}, Access::out);
    b_.phase(1, [&](Expr) {
      b_.loop("i", 8, [&](Expr i) {
        b_.loop("j", 16, [&](Expr j) {
          b_.loop("k", n_, [&](Expr k) {
            i_ = i, j_ = j, k_ = k;
            b_.store(out, {index()}, value ? value() : Expr(0));
          });
        });
      });
    });
    const Kernel kernel = simplify(b_.finish());
    const std::vector<Stmt>* body = &kernel.phases[0].body;
    while (body->at(0)->kind != StmtKind::store) body = &body->at(0)->body;
    return *body->at(0);
  }
  Expr index(const std::function<Expr()>& f) { return simplified(f).indices[0]; }
};

#define EXPECT_SIMPLIFIES(from, to)                     \
  do {                                                  \
    const Expr got = index([&] { return Expr(from); }); \
    EXPECT_TRUE(equal(got, Expr(to))) << #from;         \
  } while (0)

TEST_F(InLoops, ConstantsOfASumMeet) { EXPECT_SIMPLIFIES((i_ + 3) * 4 + (j_ - 2) + 1, i_ * 4 + j_ + 11); }
TEST_F(InLoops, EqualTermsMeet) { EXPECT_SIMPLIFIES(i_ * 3 + j_ - i_ * 2, i_ + j_); }
TEST_F(InLoops, SumsCancel) { EXPECT_SIMPLIFIES(i_ + j_ - i_ - j_, Expr(0)); }
TEST_F(InLoops, DivisionByRange) { EXPECT_SIMPLIFIES(floordiv(i_ * 16 + j_, 16), i_); }
TEST_F(InLoops, ModuloByRange) { EXPECT_SIMPLIFIES((i_ * 16 + j_) % 16, j_); }
TEST_F(InLoops, DivisionKeepsTheUnknownPart) {
  EXPECT_SIMPLIFIES(floordiv(i_ * 32 + j_ + 60, 32), i_ + floordiv(j_ + 28, 32) + 1);
}
TEST_F(InLoops, DivisionByCommonFactor) { EXPECT_SIMPLIFIES(floordiv(i_ * 4 + 3, 8), floordiv(i_, 2)); }
TEST_F(InLoops, NestedDivision) { EXPECT_SIMPLIFIES(floordiv(floordiv(k_, 4) + 1, 8), floordiv(k_ + 4, 32)); }
TEST_F(InLoops, NestedModulo) { EXPECT_SIMPLIFIES((k_ % 32 + 5) % 8, (k_ + 5) % 8); }
TEST_F(InLoops, DivisionAndModuloMeet) { EXPECT_SIMPLIFIES(floordiv(k_, 16) * 16 + k_ % 16, k_); }
TEST_F(InLoops, ConstantQuotient) { EXPECT_SIMPLIFIES(floordiv(j_ + 32, 16), Expr(2)); }
TEST_F(InLoops, SymbolicDivision) { EXPECT_SIMPLIFIES(floordiv(i_ * n_ + k_, n_), i_); }
TEST_F(InLoops, SymbolicModulo) { EXPECT_SIMPLIFIES((i_ * n_ + k_) % n_, k_); }
TEST_F(InLoops, MinByRange) { EXPECT_SIMPLIFIES(min(j_, 15), j_); }
TEST_F(InLoops, MinBySymbolicRange) { EXPECT_SIMPLIFIES(min(k_ + 1, n_), k_ + 1); }
TEST_F(InLoops, MaxOfNonnegative) { EXPECT_SIMPLIFIES(max(k_ + m_, 0), m_ + k_); }
TEST_F(InLoops, SelectByRange) { EXPECT_SIMPLIFIES(select(k_ < n_, i_, j_), i_); }
TEST_F(InLoops, SelectOfEquals) { EXPECT_SIMPLIFIES(select(k_ < m_, i_ + j_, j_ + i_), i_ + j_); }
TEST_F(InLoops, UnknownStays) { EXPECT_SIMPLIFIES(min(k_, m_), min(k_, m_)); }
TEST_F(InLoops, DivisionByUnknownStays) { EXPECT_SIMPLIFIES(floordiv(k_ * m_, m_), floordiv(m_ * k_, m_)); }

TEST_F(InLoops, ComparisonsBalance) {
  EXPECT_SIMPLIFIES(select(k_ - 2 < m_ - i_, 1, 2), select(i_ + k_ < m_ + 2, 1, 2));
}
TEST_F(InLoops, MinOfATile) {
  // 16*floordiv(n + 15, 16) >= n
  EXPECT_SIMPLIFIES(max(floordiv(n_ + 15, 16) * 16, n_), floordiv(n_ + 15, 16) * 16);
}

// i64 values from memory may overflow: 4 * x / 4 is not x.
TEST_F(InLoops, ValuesFromMemoryWrap) {
  const Buffer in = b_.param("in", kIndex, {n_}, Access::in);
  const auto value = [&] { return floordiv(load(in, {k_}) * 4, 4); };
  const StmtNode s = simplified([&] { return k_; }, value);
  EXPECT_TRUE(equal(s.value, value()));
}

TEST(Simplify, TilesAreNotEmpty) {
  Builder b("k");
  const Expr n = b.dim("n");
  const Buffer out = b.param("out", kIndex, {n}, Access::out);
  b.phase(floordiv(n + 63, 64), [&](Expr t) { b.store(out, {t}, max(min(t * 64 + 64, n) - t * 64, 0)); });
  const Kernel k = simplify(b.finish());
  const Expr t(k.phases[0].task);
  EXPECT_TRUE(equal(k.phases[0].body[0]->value, min(t * 64 + 64, n) - t * 64));
}

TEST(Simplify, FloatsOnlyWhereExact) {
  const Expr x(make_var("x", kF32)), zero = const_float(kF32, 0), one = const_float(kF32, 1);
  EXPECT_TRUE(equal(simplify(x * one), x));
  EXPECT_TRUE(equal(simplify(x / one), x));
  EXPECT_TRUE(equal(simplify(x - zero), x));
  EXPECT_TRUE(equal(simplify(x + -zero), x));
  EXPECT_TRUE(equal(simplify(x + zero), x + zero));                          // -0 + 0 = 0
  EXPECT_TRUE(equal(simplify(x * zero), x * zero));                          // NaN, -0
  EXPECT_TRUE(equal(simplify(x - x), x - x));                                // inf
  EXPECT_TRUE(equal(simplify(logical_not(x < one)), logical_not(x < one)));  // NaN
  EXPECT_TRUE(equal(simplify(fma(x, one, zero)), x + zero));
}

TEST(Simplify, RampsAndBroadcasts) {
  const Expr i(make_var("i"));
  const Expr e = (ramp(i, 1, 8) + 3) * 4 - ramp(0, 1, 8);
  EXPECT_TRUE(equal(simplify(e), ramp(i * 4 + 12, 3, 8)));
  EXPECT_TRUE(equal(simplify(ramp(i, 1, 8) - ramp(0, 1, 8)), broadcast(i, 8)));
  EXPECT_TRUE(equal(simplify(floordiv(ramp(i * 8, 1, 8), 16)), broadcast(floordiv(i, 2), 8)));
  EXPECT_TRUE(equal(simplify(ramp(i * 8, 1, 8) % 16), ramp(i % 2 * 8, 1, 8)));
  const Buffer b = make_buffer("b", kF32, {64, 64}, Space::global);
  EXPECT_TRUE(equal(simplify(load(b, {i, ramp(i, 1, 8) + 2})), load(b, {i, i + 2}, 8)));
}

TEST(Simplify, StatementsThatDoNothingGo) {
  Builder b("k");
  const Expr n = b.dim("n");
  const Buffer in = b.param("in", kF32, {n}, Access::in), out = b.param("out", kF32, {n}, Access::out);
  b.phase(n, [&](Expr t) {
    b.let("unused", load(in, {t}));
    b.loop("once", 1, [&](Expr i) {
      b.loop("never", n, n, LoopKind::serial, [&](Expr) { b.store(out, {0}, load(in, {t})); });
      b.branch(t < n, [&] { b.store(out, {t + i}, load(in, {t})); }, [&] { b.fail(1); });
    });
  });
  const Kernel k = simplify(b.finish());
  ASSERT_EQ(k.phases[0].body.size(), 1u);
  const StmtNode& s = *k.phases[0].body[0];
  ASSERT_EQ(s.kind, StmtKind::store);
  EXPECT_TRUE(equal(s.indices[0], Expr(k.phases[0].task)));
}

TEST(Simplify, BranchesAreKnownInside) {
  Builder b("k");
  const Expr n = b.dim("n"), m = b.dim("m");
  const Buffer out = b.param("out", kIndex, {n}, Access::out);
  b.phase(n, [&](Expr t) {
    b.branch((t < m) & (t > 3), [&] { b.store(out, {t}, select(t < m, min(t, 4), n)); },
             [&] { b.store(out, {t}, select(t == m, 1, 2)); });
  });
  const Kernel k = simplify(b.finish());
  const StmtNode& s = *k.phases[0].body[0];
  EXPECT_TRUE(equal(s.body[0]->value, Expr(4)));
}

TEST(Simplify, IsFast) {
  // A sum of 10,000 nodes with divisions: milliseconds if each node is visited once.
  const Expr i(make_var("i"));
  Expr e = i;
  for (int k = 0; k < 2500; ++k) e = floordiv(e * 4 + k % 4, 4) + e % (k + 3);
  EXPECT_TRUE(simplify(e));
}

}  // namespace
}  // namespace cuvil::kernel
