#include <cmath>

#include "core/ops/reduction.h"
#include "core/ops/window.h"

namespace cuvil::ops {

OpDef define_reduce_log_sum_exp() {
  OpDef d = reduction("ReduceLogSumExp",
                      "y = ln(sum of e^x over axes), as m + ln(sum of e^(x - m)) with the maximum m.", real_dtypes());
  d.lower = [](LowerContext& c) {
    using kernel::Expr;
    const kernel::Type type{accumulator_type(c.in_type(0).dtype), 1};
    ReduceNest nest(c, c.in_type(0), reduced_axes(c.node()));
    nest.for_each_kept([&](const Coords& kept) {
      const auto load = [&](const Coords& at) { return kernel::cast(type, c.load(0, at)); };
      const Expr max = nest.fold(kept, kernel::Op::max, neutral_of(kernel::Op::max, type.dtype), load);
      // An infinite maximum would make inf - inf; the sum itself says what comes out then.
      const Expr zero = kernel::constant(max.type(), 0);
      const Expr finite = kernel::make(kernel::Op::abs, {max}) < kernel::constant(max.type(), INFINITY);
      const Expr shift = c.b().let("shift", kernel::select(finite, max, zero));
      const Expr sum = nest.fold(kept, kernel::Op::add, kernel::constant(type, 0), [&](const Coords& at) {
        const Expr x = load(at);
        return kernel::make(kernel::Op::exp, {x - kernel::broadcast(shift, x.type().lanes)});
      });
      c.store(result_coords(c.node(), kept), shift + kernel::make(kernel::Op::log, {sum}));
    });
  };
  d.samples = [] { return reduction_samples({1, -2, 0.5, 3, 0.25, -1}, {1.5045969, 3.0790362}); };
  return d;
}

}  // namespace cuvil::ops
