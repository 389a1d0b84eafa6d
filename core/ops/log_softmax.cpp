#include "core/ops/normalization.h"
#include "core/ops/softmax.h"

namespace cuvil::ops {

OpDef define_log_softmax() {
  OpDef d = softmax_like("LogSoftmax", "y = x - m - ln(sum of e^(x - m)) along axis, m the maximum along axis.");
  d.lower = [](LowerContext& c) {
    using kernel::Expr;
    ReduceNest nest(c, c.in_type(0), {axis_of(c.node(), c.in_type(0).rank())});
    nest.for_each_kept(
        [&](const Coords& kept) {
          const SoftmaxRow row = softmax_row(c, nest, kept);
          const Expr log = c.b().let("log", kernel::make(kernel::Op::log, {row.sum}));
          nest.over(kept, [&](const Coords& at) {
            const Expr x = kernel::cast(row.max.type().element(), c.load(0, at));
            c.store(at, x - at_lanes(row.max, at) - at_lanes(log, at));
          });
        },
        16);
  };
  d.samples = [] { return softmax_samples({-2.40760596, -1.40760596, -0.407605964, -101, -100, 0}); };
  return d;
}

}  // namespace cuvil::ops
