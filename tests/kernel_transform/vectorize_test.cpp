#include <gtest/gtest.h>

#include "tests/kernel_transform/equivalence.h"

namespace cuvil::kernel {
namespace {

const Type kF32{DType::f32, 1};

int count(const Kernel& k, const std::function<bool(const StmtNode&)>& f) {
  int n = 0;
  for (const Phase& p : k.phases) visit(p.body, [&](const StmtNode& s) { n += f(s); }, [](const ExprNode&) {});
  return n;
}
bool is_vector_store(const StmtNode& s) { return s.kind == StmtKind::store && s.value.type().is_vector(); }

/// out[i] = f(i, in) for i in [0, n) by a vector loop, n symbolic and fixed, several vector sizes.
void check(const std::function<void(Builder&, const Buffer& in, const Buffer& out, Expr i)>& body, bool expect_vectors,
           int64_t step = 1, DType dtype = DType::f32, double tolerance = 0) {
  for (int64_t fixed : {0, 1, 5, 8, 16, 24, 37}) {
    Builder b("k");
    const Expr dim = b.dim("n");
    const Expr n = fixed ? Expr(fixed) : dim;
    const Buffer in = b.param("in", Type{dtype, 1}, {n * 3 + 8}, Access::in);
    const Buffer out = b.param("out", Type{dtype, 1}, {n * 3 + 8}, Access::inout);
    b.phase(2, [&](Expr t) { b.loop("i", t, n, LoopKind::vector, [&](Expr i) { body(b, in, out, i); }, step); });
    const Kernel before = b.finish();
    verify(before);
    for (int bytes : {16, 32, 64}) {
      const Kernel after = vectorize_loops(before, bytes);
      ASSERT_NO_THROW(verify(after)) << print(after);
      if (!fixed) {
        EXPECT_EQ(count(after, is_vector_store) > 0, expect_vectors) << print(after);
      }
      const Kernel clean = simplify(after);
      ASSERT_NO_THROW(verify(clean)) << print(clean);
      for (int64_t d : {0, 1, 2, 7, 16, 33, 70}) {
        if (fixed && d) continue;
        expect_same(before, after, {d}, tolerance);
        expect_same(before, clean, {d}, tolerance);
      }
    }
  }
}

TEST(Vectorize, Contiguous) {
  check([](Builder& b, const Buffer& in, const Buffer& out,
           Expr i) { b.store(out, {i}, load(in, {i}) * load(in, {i + 1}) + load(in, {0})); },
        true);
}
TEST(Vectorize, Step) {
  check([](Builder& b, const Buffer& in, const Buffer& out, Expr i) { b.store(out, {i}, load(in, {i})); }, false, 3);
}
TEST(Vectorize, GatherAndScatter) {
  check([](Builder& b, const Buffer& in, const Buffer& out, Expr i) { b.store(out, {i}, load(in, {i * 3})); }, true);
  check([](Builder& b, const Buffer& in, const Buffer& out, Expr i) { b.store(out, {i * 2}, load(in, {i})); }, false);
}
TEST(Vectorize, Lets) {
  check(
      [](Builder& b, const Buffer& in, const Buffer& out, Expr i) {
        const Expr j = b.let("j", i + 2), x = b.let("x", load(in, {j})), u = b.let("u", load(in, {3}));
        b.store(out, {j}, x + u);
      },
      true);
}
TEST(Vectorize, BranchesBecomeMasks) {
  check(
      [](Builder& b, const Buffer& in, const Buffer& out, Expr i) {
        const Expr x = b.let("x", load(in, {i}));
        b.branch(
            x > const_float(kF32, 0),
            [&] {
              b.store(out, {i}, x * x + load(in, {2}));
              b.branch(x > const_float(kF32, 1), [&] { b.store(out, {i}, load(in, {i + 1})); });
            },
            [&] { b.store(out, {i}, -x); });
      },
      true);
}
TEST(Vectorize, UniformBranchesStay) {
  check(
      [](Builder& b, const Buffer& in, const Buffer& out, Expr i) {
        b.branch(
            load(in, {1}) > const_float(kF32, 0), [&] { b.store(out, {i}, load(in, {i})); },
            [&] { b.store(out, {i}, cast(kF32, i)); });
      },
      true);
}
TEST(Vectorize, BoundsChecks) {
  check(
      [](Builder& b, const Buffer& in, const Buffer& out, Expr i) {
        const Expr inside = (i >= 2) & (i < 20);
        b.store(out, {i}, select(inside, load(in, {max(i - 2, 0)}), const_float(kF32, 1)));
        b.store(out, {i}, load(in, {i - 2}, 1, i >= 2), i < 30);
      },
      true);
}
TEST(Vectorize, NarrowTypes) {
  check([](Builder& b, const Buffer& in, const Buffer& out,
           Expr i) { b.store(out, {i}, cast(Type{DType::u8, 1}, cast(kF32, load(in, {i})) * const_float(kF32, 2))); },
        true, 1, DType::u8);
}
TEST(Vectorize, ADependenceStaysSerial) {
  check([](Builder& b, const Buffer& in, const Buffer& out, Expr i) { b.store(out, {0}, load(in, {i})); }, false);
}

void check_reduction(const std::function<Expr(Expr acc, Expr x)>& f, DType dtype, bool vectors) {
  Builder b("k");
  const Expr n = b.dim("n");
  const Type type{dtype, 1};
  const Buffer in = b.param("in", type, {n}, Access::in), out = b.param("out", type, {2}, Access::out);
  b.phase(1, [&](Expr) {
    const Buffer acc = b.alloc("acc", type, {2}, Space::reg);
    for (int k = 0; k < 2; ++k) b.store(acc, {k}, constant(type, 1));
    b.loop("i", 0, n, LoopKind::vector, [&](Expr i) {
      b.store(acc, {0}, f(load(acc, {0}), load(in, {i})));
      b.branch(i > 3, [&] { b.store(acc, {1}, f(load(acc, {1}), load(in, {i}))); });
    });
    for (int k = 0; k < 2; ++k) b.store(out, {k}, load(acc, {k}));
  });
  const Kernel before = b.finish(), after = vectorize_loops(before, 64);
  ASSERT_NO_THROW(verify(after)) << print(after);
  EXPECT_EQ(count(after, is_vector_store) > 0, vectors) << print(after);
  for (int64_t d : {0, 1, 5, 16, 50}) {
    expect_same(before, after, {d}, 1e-6);
    expect_same(before, simplify(after), {d}, 1e-6);
  }
}

TEST(Vectorize, Reductions) {
  for (DType t : {DType::f32, DType::i32, DType::u8, DType::i64}) {
    check_reduction([](Expr acc, Expr x) { return acc + x; }, t, true);
    check_reduction([](Expr acc, Expr x) { return acc - x * x; }, t, true);
    check_reduction([](Expr acc, Expr x) { return max(x, acc); }, t, true);
    check_reduction([](Expr acc, Expr x) { return min(acc, x); }, t, true);
    check_reduction([](Expr acc, Expr x) { return acc * x; }, t, false);
    check_reduction([](Expr acc, Expr x) { return acc + acc * x; }, t, false);
  }
  check_reduction([](Expr acc, Expr x) { return fma(x, x, acc); }, DType::f32, true);
}

}  // namespace
}  // namespace cuvil::kernel
