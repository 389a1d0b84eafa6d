#include "core/ops/recurrent.h"

namespace cuvil::ops {
namespace {

using kernel::Expr;
constexpr size_t kBias = 4;

void lower_gru(LowerContext& c) {
  const std::vector<GateActivation> f = activations_of(c.node());
  const double clip = c.node().attr<double>("clip");
  const bool linear = c.node().attr<int64_t>("linear_before_reset") != 0;
  for_each_recurrent_task(c, {3, 2, 3}, [&](RecurrentRows& r) {
    RecurrentRows::State update, kept;  // z, and the reset state r h
    if (!linear) {
      update = r.room("z");
      kept = r.room("rh");
    }
    const auto gate = [&](int row, int g, const Expr& sum, Expr j, Expr mask, size_t activation) {
      const Expr v = r.x(row, g, j, mask) + sum;
      return c.b().let("gate", r.activate(f, activation, 2, c.b().let("v", v), clip));
    };
    const auto mix = [&](int row, const Expr& z, const Expr& candidate, Expr j, Expr mask) {
      const Expr one = kernel::constant(z.type(), 1);
      r.set_h(row, j, mask, (one - z) * candidate + z * r.get(r.h(), row, j, mask));
    };
    r.for_each_step([&] {
      r.for_each_unit(r.h(), 0, linear ? 3 : 2, [&](Expr j, Expr mask, const RecurrentRows::Sums& sums) {
        for (int row = 0; row < r.rows(); ++row) {
          const auto& sum = sums[static_cast<size_t>(row)];
          const Expr z = gate(row, 0, sum[0], j, mask, 0), reset = gate(row, 1, sum[1], j, mask, 0);
          if (linear) {
            Expr inner = sum[2];
            if (c.has_in(kBias)) inner = inner + r.weight(kBias, Expr(0), j, mask);
            mix(row, z, gate(row, 2, reset * inner, j, mask, 1), j, mask);
          } else {
            r.set(update, row, j, mask, z);
            r.set(kept, row, j, mask, reset * r.get(r.h(), row, j, mask));
          }
        }
      });
      if (linear) return;
      r.for_each_unit(kept, 2, 1, [&](Expr j, Expr mask, const RecurrentRows::Sums& sums) {
        for (int row = 0; row < r.rows(); ++row) {
          const Expr z = c.b().let("z", r.get(update, row, j, mask));
          mix(row, z, gate(row, 2, sums[static_cast<size_t>(row)][0], j, mask, 1), j, mask);
        }
      });
    });
    r.finish(1, r.h());
  });
}

}  // namespace

OpDef define_gru() {
  OpDef d = recurrent("GRU",
                      "Gated recurrent unit (ONNX GRU with the input's products taken out). z, r = f(x + h r), "
                      "h' = (1 - z) g(x + (r h) r) + z h. Gates in the order z, r, h.",
                      3);
  d.inputs.push_back({"bias_h", "[D, H]: added to h r of the gate h before it is reset", true});
  d.attributes.push_back(
      optional("linear_before_reset", AttrKind::integer, "1: the last gate is g(x + r (h r + bias_h))", int64_t{0}));
  d.infer = [](const InferContext& c) {
    if (c.has_in(kBias)) {
      same_dtype(c, kBias);
      need_rank(c, kBias, 2);
      c.require_equal(c.in(kBias).shape[0], c.in(1).shape[0], "directions of bias_h");
      c.require_equal(c.in(kBias).shape[1], c.in(1).shape[1], "columns of bias_h");
      if (c.node.attr<int64_t>("linear_before_reset") == 0) c.fail("bias_h needs linear_before_reset");
    }
    return infer_recurrent(c, 3, 1, 2);
  };
  d.lower = lower_gru;
  d.samples = [] {
    const std::vector<std::string> usual{"Sigmoid", "Tanh"}, twice{"Sigmoid", "Tanh", "Elu", "LeakyRelu"};
    const std::string both = "bidirectional";
    return std::vector<Sample>{
        // One unit, two steps: numpy.
        {"by_hand",
         {f32({2, 1, 3}), f32({1, 1, 3})},
         {{"activations", usual}},
         {{0.5, -1, 0.25, 1, 0.5, -0.5}, {0.3, -0.2, 0.7}},
         {0.0924667556, -0.0452354918}},
        {"rows",
         {f32({5, 7, 3 * 19}), f32({1, 19, 3 * 19})},
         {{"activations", usual}, {"direction", std::string("reverse")}}},
        {"all",
         {f32({4, 5, 2 * 3 * 16}), f32({2, 16, 3 * 16}), i64({5}), f32({2, 5, 16})},
         {{"activations", twice}, {"direction", both}, {"clip", 0.75}},
         {{}, {}, {4, 2, 1, 3, 4}}},
        {"linear",
         {f32({4, 3, 2 * 3 * 8}), f32({2, 8, 3 * 8}), i64({3}), f32({2, 3, 8}), f32({2, 8})},
         {{"activations", std::vector<std::string>{"Sigmoid", "Tanh", "Sigmoid", "Tanh"}},
          {"direction", both},
          {"linear_before_reset", int64_t{1}}},
         {{}, {}, {4, 2, 0}}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
