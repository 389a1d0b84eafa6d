#include "core/ops/define.h"
#include "core/ops/loops.h"

namespace cuvil::ops {
namespace {

using kernel::Expr;

std::vector<ir::Type> infer_linear_attention(const InferContext& c) {
  for (size_t i = 0; i < 4; ++i) {
    same_dtype(c, i);
    need_rank(c, i, 4);
  }
  const Shape &q = c.in(0).shape, &k = c.in(1).shape, &v = c.in(2).shape, &s = c.in(3).shape;
  if (!q[1].is_const() || !k[1].is_const()) c.fail("numbers of heads must be known");
  if (k[1].value() < 1 || q[1].value() % k[1].value() != 0) c.fail("query heads must be a multiple of key heads");
  c.require_equal(q[3], k[3], "columns of queries and keys");
  for (size_t a : {size_t{0}, size_t{2}}) {
    c.require_equal(q[a], k[a], "sizes of queries and keys");
    c.require_equal(q[a], v[a], "sizes of queries and values");
  }
  c.require_equal(k[1], v[1], "heads of keys and values");
  const Shape state{q[0], k[1], k[3], v[3]};
  for (size_t a = 0; a < 4; ++a) c.require_equal(s[a], state[a], "sizes of the state");
  const auto broadcasts = [&](size_t i, const Shape& to, const char* what) {
    if (!c.has_in(i)) return;
    same_dtype(c, i);
    need_rank(c, i, 4);
    for (size_t a = 0; a < 4; ++a)
      if (c.in(i).shape[a] != Dim(1)) c.require_equal(c.in(i).shape[a], to[a], what);
  };
  broadcasts(4, k, "sizes of the decay");
  broadcasts(5, {k[0], k[1], k[2], Dim(1)}, "sizes of beta");
  return {{c.in(0).dtype, {q[0], q[1], q[2], v[3]}, {}}, {c.in(0).dtype, state, {}}};
}

/// Columns of the state never meet: each vector of them takes all steps alone, in scratch memory.
void lower_linear_attention(LowerContext& c) {
  const Shape &q = c.in_type(0).shape, &v = c.in_type(2).shape;
  const Dim heads = v[1];
  const int64_t group = q[1].value() / heads.value();
  const Expr keys = c.dim(q[3]), steps = c.dim(q[2]);
  const kernel::Type scalar{DType::f32, 1};
  Walk walk;
  walk.grain = 1;
  for_each(c, {DType::f32, {v[0], heads, v[3]}, {}}, walk, [&](const Coords& at) {
    const Expr b = at.index[0], h = at.index[1], m = at.index[2];
    const int lanes = at.lanes;
    const auto columns = [&](Expr head, Expr row) {
      Coords to{{b, std::move(head), std::move(row), m}, at.axis == 2 ? 3 : -1, lanes, at.mask, at.where};
      return to;
    };
    const auto read = [&](size_t input, const Expr& head, const Expr& t, const Expr& d) {  // of [B, H, T, D], broadcast
      const Shape& s = c.in_type(input).shape;
      const auto i = [&](size_t a, const Expr& e) { return s[a] == Dim(1) ? Expr(0) : e; };
      return kernel::broadcast(c.load(input, {i(0, b), i(1, head), i(2, t), i(3, d)}), lanes);
    };
    const kernel::Buffer state = c.b().alloc("state", scalar, {keys, Expr(lanes)}, kernel::Space::scratch);
    const auto get = [&](const Expr& d) { return kernel::load(state, {d, Expr(0)}, lanes); };
    c.b().loop("d", keys, [&](Expr d) { c.b().store(state, {d, Expr(0)}, c.load(3, columns(h, d))); });
    c.b().loop("t", steps, [&](Expr t) {
      const Expr zero = kernel::broadcast(kernel::constant(scalar, 0), lanes);
      Expr value = c.b().let("value", c.load(2, columns(h, t)));
      if (c.has_in(4) || c.has_in(5)) {
        Register found(c.b(), "found", zero);
        c.b().loop("d", keys, [&](Expr d) {
          Expr s = get(d);
          if (c.has_in(4)) {
            s = c.b().let("s", s * kernel::make(kernel::Op::exp, {read(4, h, t, d)}));
            c.b().store(state, {d, Expr(0)}, s);
          }
          if (c.has_in(5)) found.set(found.get() + s * read(1, h, t, d));
        });
        if (c.has_in(5)) value = c.b().let("value", read(5, h, t, Expr(0)) * (value - found.get()));
      }
      std::vector<Register> sums;
      for (int64_t g = 0; g < group; ++g) sums.emplace_back(c.b(), "sum", zero);
      const auto query_head = [&](int64_t g) { return h * Expr(group) + Expr(g); };
      c.b().loop("d", keys, [&](Expr d) {
        const Expr s = c.b().let("s", get(d) + read(1, h, t, d) * value);
        c.b().store(state, {d, Expr(0)}, s);
        for (int64_t g = 0; g < group; ++g) {
          Register& sum = sums[static_cast<size_t>(g)];
          sum.set(sum.get() + read(0, query_head(g), t, d) * s);
        }
      });
      const Expr scale = kernel::broadcast(kernel::constant(scalar, c.node().attr<double>("scale")), lanes);
      for (int64_t g = 0; g < group; ++g) {
        Coords to = columns(query_head(g), t);
        c.store(to, sums[static_cast<size_t>(g)].get() * scale);
      }
    });
    c.b().loop("d", keys, [&](Expr d) { c.store(columns(h, d), get(d), 1); });
  });
}

}  // namespace

OpDef define_linear_attention() {
  OpDef d;
  d.name = "LinearAttention";
  d.doc =
      "A state S [D, E] per head walks over the T steps (ONNX LinearAttention): S = e^decay S, row by row; v' = beta "
      "(v - "
      "S^T k), or v without beta; S = S + k v'^T; y = scale S^T q. Heads of queries in groups share one of keys.";
  d.inputs = {{"query", "[B, G * H, T, D]"},
              {"key", "[B, H, T, D]"},
              {"value", "[B, H, T, E]"},
              {"state", "[B, H, D, E]: before the first step"},
              {"decay", "broadcasts to [B, H, T, D]", true},
              {"beta", "broadcasts to [B, H, T, 1]", true}};
  d.outputs = {{"y", "[B, G * H, T, E]"}, {"present", "the state after the last step"}};
  d.attributes = {required("scale", AttrKind::real, "of y")};
  d.traits = kPure;
  d.dtypes = {DType::f32};
  d.infer = infer_linear_attention;
  d.lower = lower_linear_attention;
  d.flops = [](const ir::Node& n) { return Dim(6) * num_elements(n.output()->type.shape) * n.input(1)->type.shape[3]; };
  d.samples = [] {
    const ir::Attributes one{{"scale", 1.0}};
    return std::vector<Sample>{
        {"by_hand",
         {f32({1, 1, 2, 1}), f32({1, 1, 2, 1}), f32({1, 1, 2, 1}), f32({1, 1, 1, 1})},
         one,
         {{1, 2}, {3, 4}, {5, 6}, {10}},
         {25, 98}},
        {"delta",
         {f32({1, 1, 2, 1}), f32({1, 1, 2, 1}), f32({1, 1, 2, 1}), f32({1, 1, 1, 1}), {}, f32({1, 1, 1, 1})},
         one,
         {{1, 2}, {3, 4}, {5, 6}, {10}, {}, {0.5}},
         {-27.5, 409}},
        {"heads", {f32({2, 6, 5, 7}), f32({2, 3, 5, 7}), f32({2, 3, 5, 19}), f32({2, 3, 7, 19})}, {{"scale", 0.5}}},
        {"all",
         {f32({2, 4, 3, 7}), f32({2, 2, 3, 7}), f32({2, 2, 3, 16}), f32({2, 2, 7, 16}), f32({2, 2, 3, 7}),
          f32({2, 2, 3, 1})},
         one,
         {},
         {},
         1e-4,
         {-1, 1}},
        {"no_steps", {f32({1, 1, 0, 2}), f32({1, 1, 0, 2}), f32({1, 1, 0, 3}), f32({1, 1, 2, 3})}, one},
    };
  };
  return d;
}

}  // namespace cuvil::ops
