#include "core/ops/matmul.h"

#include <algorithm>

#include "core/ops/define.h"
#include "core/ops/loops.h"
#include "core/ops/window.h"

namespace cuvil::ops {

MatMulProblem MatMulProblem::of(const ir::Node& node) {
  MatMulProblem p;
  const Shape& a = node.input(0)->type.shape;
  const Shape& b = node.input(1)->type.shape;
  p.transpose_a = node.attr<int64_t>("transpose_a") != 0;
  p.transpose_b = node.attr<int64_t>("transpose_b") != 0;
  p.a_vector = a.size() == 1;
  p.b_vector = b.size() == 1;
  if (!p.a_vector) {
    p.a_batch.assign(a.begin(), a.end() - 2);
    p.m = p.transpose_a ? a.back() : a[a.size() - 2];
  }
  p.k = p.a_vector || !p.transpose_a ? a.back() : a[a.size() - 2];
  if (!p.b_vector) {
    p.b_batch.assign(b.begin(), b.end() - 2);
    p.n = p.transpose_b ? b[b.size() - 2] : b.back();
  }
  return p;
}

namespace {

using kernel::Expr;

std::vector<ir::Type> infer_matmul(const InferContext& c) {
  same_dtype(c, 1);
  if (c.in(0).rank() == 0 || c.in(1).rank() == 0) c.fail("a scalar is no matrix");
  const MatMulProblem p = MatMulProblem::of(c.node);
  const Shape& b = c.in(1).shape;
  const Dim k = p.b_vector || p.transpose_b ? b.back() : b[b.size() - 2];
  c.require_equal(p.k, k, "inner sizes");
  Shape shape = broadcast(c, p.a_batch, p.b_batch);
  if (!p.a_vector) shape.push_back(p.m);
  if (!p.b_vector) shape.push_back(p.n);
  return {{c.in(0).dtype, shape, {}}};
}

/// Coordinates of an operand's batch, its row and its column; `row` or `column` is an axis of the result or -1.
Coords operand(const Coords& at, const Shape& batch, size_t result_batch, int own, bool own_first, const Expr& k,
               bool vector) {
  Coords c;
  c.lanes = at.lanes;
  const size_t shift = result_batch - batch.size();
  for (size_t i = 0; i < batch.size(); ++i) {
    c.index.push_back(batch[i].as_const() == 1 ? Expr(0) : at.index[i + shift]);
    if (at.axis == static_cast<int>(i + shift) && batch[i].as_const() != 1) c.axis = static_cast<int>(i);
  }
  if (vector) {
    c.index.push_back(k);
  } else {
    const int position = static_cast<int>(c.index.size()) + (own_first ? 0 : 1);
    if (own_first) c.index.push_back(at.index[static_cast<size_t>(own)]);
    c.index.push_back(k);
    if (!own_first) c.index.push_back(at.index[static_cast<size_t>(own)]);
    if (at.axis == own) c.axis = position;
  }
  c.mask = at.mask;
  return c;
}

void lower_matmul(LowerContext& c) {
  const MatMulProblem p = MatMulProblem::of(c.node());
  const int rank = c.out_type().rank();
  const int column = p.b_vector ? -1 : rank - 1;
  const int row = p.a_vector ? -1 : rank - (p.b_vector ? 1 : 2);
  const size_t batch = static_cast<size_t>(rank - (p.a_vector ? 0 : 1) - (p.b_vector ? 0 : 1));
  const DType acc_type = accumulator_type(c.in_type(0).dtype);
  Walk walk;
  walk.grain = std::max<int64_t>(64, 65536 / std::max<int64_t>(1, p.k.as_const().value_or(256)));
  for_each(c, c.out_memory().type(), walk, [&](const Coords& at) {
    Register acc(c.b(), "acc", kernel::broadcast(kernel::constant({acc_type, 1}, 0), at.lanes));
    c.b().loop("k", c.dim(p.k), [&](Expr k) {
      const Expr a = c.load(0, operand(at, p.a_batch, batch, row, !p.transpose_a, k, p.a_vector));
      const Expr b = c.load(1, operand(at, p.b_batch, batch, column, p.transpose_b, k, p.b_vector));
      acc.set(multiply_add(kernel::cast({acc_type, 1}, a), kernel::cast({acc_type, 1}, b), acc.get()));
    });
    c.store(at, acc.get());
  });
}

}  // namespace

OpDef define_matmul() {
  OpDef d;
  d.name = "MatMul";
  d.doc =
      "y[..., i, j] = sum over k of a[..., i, k] * b[..., k, j]; leading axes broadcast; a 1-d operand is a row on the "
      "left, a column on the right, and its axis is gone from the result (numpy.matmul). Floats of 16 bits sum in f32.";
  d.inputs = {{"a", "[..., M, K] or [K]"}, {"b", "[..., K, N] or [K]"}};
  d.outputs = {{"y", "[..., M, N]"}};
  d.attributes = {optional("transpose_a", AttrKind::integer, "1: a is given as [..., K, M]", int64_t{0}),
                  optional("transpose_b", AttrKind::integer, "1: b is given as [..., N, K]", int64_t{0})};
  d.traits = kContraction | kEpilogueOk | kPure;
  d.dtypes = number_dtypes();
  d.infer = infer_matmul;
  d.lower = lower_matmul;
  d.flops = [](const ir::Node& n) { return Dim(2) * num_elements(n.output()->type.shape) * MatMulProblem::of(n).k; };
  d.samples = [] {
    const auto i32 = [](Shape s) { return of(DType::i32, std::move(s)); };
    return std::vector<Sample>{
        {"by_hand", {f32({2, 3}), f32({3, 2})}, {}, {{1, 2, 3, 4, 5, 6}, {1, -1, 0.5, 2, 3, 0}}, {11, 3, 24.5, 6}},
        {"remainders", {f32({5, 33}), f32({33, 19})}},
        {"batched", {f32({2, 3, 4, 8}), f32({2, 3, 8, 17})}},
        {"broadcast", {f32({3, 1, 4, 8}), f32({2, 8, 5})}},
        {"weights", {f32({2, 7, 24}), f32({24, 48})}},
        {"transposed_b", {f32({2, 6, 9}), f32({2, 7, 9})}, {{"transpose_b", int64_t{1}}}},
        {"transposed_a", {f32({9, 6}), f32({9, 7})}, {{"transpose_a", int64_t{1}}}},
        {"vectors", {f32({9}), f32({9})}},
        {"row", {f32({9}), f32({2, 9, 5})}},
        {"column", {f32({2, 5, 9}), f32({9})}},
        {"integers", {i32({3, 4}), i32({4, 5})}},
        {"no_terms", {f32({3, 0}), f32({0, 5})}},
        {"empty", {f32({0, 4}), f32({4, 5})}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
