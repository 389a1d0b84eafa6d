#include "core/ops/define.h"
#include "core/ops/loops.h"
#include "core/ops/window.h"

namespace cuvil::ops {
namespace {

using kernel::Expr;

/// Gaussian elimination with the largest pivot of each column (Golub, Van Loan, Matrix Computations, 3.4), one matrix
/// after the other, in scratch memory.
void lower_det(LowerContext& c) {
  const Shape& x = c.in_type(0).shape;
  const kernel::Type type{accumulator_type(c.in_type(0).dtype), 1};
  const Expr n = c.dim(x.back());
  const auto number = [&](double v) { return kernel::constant(type, v); };
  const auto size_of_value = [&](const Expr& v) { return kernel::make(kernel::Op::abs, {v}); };
  Walk walk;
  walk.grain = 1;
  walk.max_lanes = 1;
  for_each(c, c.out_memory().type(), walk, [&](const Coords& at) {
    const kernel::Buffer a = c.b().alloc("a", type, {n, n}, kernel::Space::scratch);
    const auto get = [&](const Expr& i, const Expr& j) { return kernel::load(a, {i, j}); };
    c.b().loop("i", n, [&](Expr i) {
      c.b().loop("j", n, [&](Expr j) {
        std::vector<Expr> from = at.index;
        from.push_back(i);
        from.push_back(j);
        c.b().store(a, {i, j}, kernel::cast(type, c.load(0, std::move(from))));
      });
    });
    Register det(c.b(), "det", number(1));
    c.b().loop("k", n, [&](Expr k) {
      Register pivot(c.b(), "pivot", k);
      c.b().loop("i", n - k, [&](Expr i) {
        const Expr row = c.b().let("row", k + i);
        const Expr better = size_of_value(get(row, k)) > size_of_value(get(pivot.get(), k));
        pivot.set(kernel::select(better, row, pivot.get()));
      });
      const Expr p = c.b().let("p", pivot.get());
      c.b().branch(p != k, [&] {
        c.b().loop("j", n, [&](Expr j) {
          const Expr upper = c.b().let("upper", get(k, j)), lower = c.b().let("lower", get(p, j));
          c.b().store(a, {k, j}, lower);
          c.b().store(a, {p, j}, upper);
        });
        det.set(number(0) - det.get());
      });
      const Expr head = c.b().let("head", get(k, k));
      det.set(det.get() * head);
      c.b().branch(head != number(0), [&] {
        c.b().loop("i", n - k - Expr(1), [&](Expr i) {
          const Expr row = c.b().let("row", k + Expr(1) + i);
          const Expr factor = c.b().let("factor", get(row, k) / head);
          c.b().loop("j", n - k, [&](Expr j) {
            const Expr column = c.b().let("column", k + j);
            c.b().store(a, {row, column}, get(row, column) - factor * get(k, column));
          });
        });
      });
    });
    c.store(at, det.get());
  });
}

}  // namespace

OpDef define_det() {
  OpDef d;
  d.name = "Det";
  d.doc = "y = the determinant of each matrix.";
  d.inputs = {{"x", "[..., N, N]"}};
  d.outputs = {{"y", "[...]"}};
  d.traits = kPure | kEpilogueOk;
  d.dtypes = real_dtypes();
  d.infer = [](const InferContext& c) {
    const Shape& x = c.in(0).shape;
    if (x.size() < 2) c.fail("a matrix has two axes");
    c.require_equal(x[x.size() - 2], x.back(), "rows and columns");
    return std::vector<ir::Type>{{c.in(0).dtype, {x.begin(), x.end() - 2}, {}}};
  };
  d.lower = lower_det;
  d.flops = [](const ir::Node& n) {
    const Dim size = n.input(0)->type.shape.back();
    return num_elements(n.input(0)->type.shape) * size;
  };
  d.samples = [] {
    return std::vector<Sample>{
        {"by_hand", {f32({2, 2})}, {}, {{0, 1, 2, 3}}, {-2}},
        {"three", {f32({1, 3, 3})}, {}, {{2, 0, 1, 4, 1, 3, -1, 5, 2}}, {-5}},
        {"singular", {f32({2, 2})}, {}, {{1, 2, 2, 4}}, {0}},
        {"batch", {f32({3, 2, 5, 5})}, {}, {}, {}, 1e-4},
        {"one", {f32({3, 1, 1})}},
        {"none", {f32({2, 0, 0})}, {}, {}, {1, 1}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
