#include "core/ops/recurrent.h"

namespace cuvil::ops {

OpDef define_rnn() {
  OpDef d = recurrent("RNN", "Plain recurrence (ONNX RNN with the input's products taken out): h' = f(x + h r).", 1);
  d.infer = [](const InferContext& c) { return infer_recurrent(c, 1, 1, 1); };
  d.lower = [](LowerContext& c) {
    using kernel::Expr;
    const std::vector<GateActivation> f = activations_of(c.node());
    const double clip = c.node().attr<double>("clip");
    for_each_recurrent_task(c, {1, 2, 3}, [&](RecurrentRows& r) {
      r.for_each_step([&] {
        r.for_each_unit(r.h(), 0, 1, [&](Expr j, Expr mask, const RecurrentRows::Sums& sums) {
          for (int row = 0; row < r.rows(); ++row) {
            const Expr v = c.b().let("v", r.x(row, 0, j, mask) + sums[static_cast<size_t>(row)][0]);
            r.set_h(row, j, mask, r.activate(f, 0, 1, v, clip));
          }
        });
      });
      r.finish(1, r.h());
    });
  };
  d.samples = [] {
    const std::vector<std::string> tanh{"Tanh"}, two{"Relu", "Affine"};
    return std::vector<Sample>{
        {"by_hand",
         {f32({3, 1, 1}), f32({1, 1, 1})},
         {{"activations", std::vector<std::string>{"Relu"}}},
         {{1, -4, 2}, {0.5}},
         {1, 0, 2}},
        {"rows", {f32({5, 7, 19}), f32({1, 19, 19})}, {{"activations", tanh}, {"direction", std::string("reverse")}}},
        {"all",
         {f32({4, 5, 2 * 16}), f32({2, 16, 16}), i64({5}), f32({2, 5, 16})},
         {{"activations", two}, {"direction", std::string("bidirectional")}, {"clip", 0.5}},
         {{}, {}, {4, 2, 1, 3, 4}}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
