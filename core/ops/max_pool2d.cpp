#include "core/ops/pool.h"
#include "core/ops/reduction.h"

namespace cuvil::ops {

OpDef define_max_pool2d() {
  OpDef d = pooling("MaxPool2D", "y[n, c, i, j] = maximum of x over the window; padding does not count; NaN if any is.",
                    number_dtypes());
  d.lower = [](LowerContext& c) {
    using kernel::Expr;
    const Window window = pool_window(c.node());
    const Shape& x = c.in_type(0).shape;
    const DType dtype = accumulator_type(c.in_type(0).dtype);
    Walk walk;
    walk.grain = 1024;
    for_each(c, c.out_memory().type(), walk, [&](const Coords& at) {
      const Expr lowest = kernel::broadcast(neutral_of(kernel::Op::max, dtype), at.lanes);
      Register best(c.b(), "best", lowest);
      window.for_each_tap(
          c, at, x[2], x[3],
          [&](const Coords& tap, Expr, Expr) {
            Expr value = kernel::cast({dtype, 1}, c.load(0, tap));
            if (Expr on = tap.predicate()) value = kernel::select(on, value, lowest);
            best.set(kernel::max(best.get(), value));
          },
          ceil_mode(c.node()));
      c.store(at, best.get());
    });
  };
  d.samples = [] { return pool_samples({6, 8, 10, 8, 10, -11}); };
  return d;
}

}  // namespace cuvil::ops
