#include "core/ops/recurrent.h"

namespace cuvil::ops {
namespace {

using kernel::Expr;
constexpr size_t kPeepholes = 5;

void lower_lstm(LowerContext& c) {
  const std::vector<GateActivation> f = activations_of(c.node());
  const double clip = c.node().attr<double>("clip");
  const bool coupled = c.node().attr<int64_t>("input_forget") != 0;
  for_each_recurrent_task(c, {4, 2, 3}, [&](RecurrentRows& r) {
    const RecurrentRows::State cell = r.state("c", 4);
    r.for_each_step([&] {
      r.for_each_unit(r.h(), 0, 4, [&](Expr j, Expr mask, const RecurrentRows::Sums& sums) {
        for (int row = 0; row < r.rows(); ++row) {
          // Gates lie in the order i, o, f, c; peepholes i, o, f.
          const auto gate = [&](int g, const Expr& state) {
            Expr v = r.x(row, g, j, mask) + sums[static_cast<size_t>(row)][static_cast<size_t>(g)];
            if (state && c.has_in(kPeepholes)) v = v + r.weight(kPeepholes, Expr(g) * r.hidden(), j, mask) * state;
            return c.b().let("gate", v);
          };
          const auto apply = [&](size_t i, const Expr& v, double limit) {
            return c.b().let("a", r.activate(f, i, 3, v, limit));
          };
          const Expr before = c.b().let("before", r.get(cell, row, j, mask));
          const Expr in = apply(0, gate(0, before), clip);
          const Expr forget = coupled ? kernel::constant(in.type(), 1) - in : apply(0, gate(2, before), clip);
          const Expr now = c.b().let("now", forget * before + in * apply(1, gate(3, {}), clip));
          const Expr out = apply(0, gate(1, now), clip);
          r.update(cell, row, j, mask, now);
          r.set_h(row, j, mask, out * apply(2, now, 0));
        }
      });
    });
    r.finish(1, r.h());
    r.finish(2, cell);
  });
}

}  // namespace

OpDef define_lstm() {
  OpDef d =
      recurrent("LSTM",
                "Long short-term memory (ONNX LSTM with the input's products taken out). i, o, f = f(x + h r + p c), "
                "c' = f c + i g(x + h r), h' = o h(c'); o looks at c'. Gates in the order i, o, f, c.",
                4);
  d.inputs.push_back({"initial_c", "[D, B, H]; absent: zeros", true});
  d.inputs.push_back({"p", "[D, 3 * H]: peepholes of i, o, f", true});
  d.outputs.push_back({"y_c", "[D, B, H]: the last c"});
  d.attributes.push_back(optional("input_forget", AttrKind::integer, "1: the forget gate is 1 - i", int64_t{0}));
  d.infer = [](const InferContext& c) {
    if (c.has_in(kPeepholes)) {
      same_dtype(c, kPeepholes);
      need_rank(c, kPeepholes, 2);
      c.require_equal(c.in(kPeepholes).shape[0], c.in(1).shape[0], "directions of p");
      c.require_equal(c.in(kPeepholes).shape[1], Dim(3) * c.in(1).shape[1], "columns of p");
    }
    return infer_recurrent(c, 4, 2, 3);
  };
  d.lower = lower_lstm;
  d.samples = [] {
    const std::vector<std::string> usual{"Sigmoid", "Tanh", "Tanh"};
    std::vector<std::string> twice = usual;
    twice.insert(twice.end(), {"HardSigmoid", "Softsign", "ScaledTanh"});
    return std::vector<Sample>{
        // One unit, two steps: numpy.
        {"by_hand",
         {f32({2, 1, 4}), f32({1, 1, 4})},
         {{"activations", usual}},
         {{0.5, -1, 0.25, 2, 1, 0.5, -0.5, 0.1}, {0.3, -0.2, 0.1, 0.7}},
         {0.1444478796, 0.2208036086}},
        {"rows",
         {f32({5, 7, 4 * 19}), f32({1, 19, 4 * 19})},
         {{"activations", usual}, {"direction", std::string("reverse")}}},
        {"all",
         {f32({4, 5, 2 * 4 * 16}), f32({2, 16, 4 * 16}), i64({5}), f32({2, 5, 16}), f32({2, 5, 16}), f32({2, 3 * 16})},
         {{"activations", twice}, {"direction", std::string("bidirectional")}, {"clip", 0.75}},
         {{}, {}, {4, 2, 1, 3, 4}}},
        {"coupled",
         {f32({3, 2, 4 * 8}), f32({1, 8, 4 * 8}), std::nullopt, f32({1, 2, 8})},
         {{"activations", usual}, {"input_forget", int64_t{1}}}},
        {"no_rows", {f32({3, 0, 4 * 8}), f32({1, 8, 4 * 8})}, {{"activations", usual}}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
