#include "core/ops/pool.h"

namespace cuvil::ops {
namespace {

using kernel::Expr;

/// How many taps of the window at output position `o` lie in [low, high) along axis d.
Expr taps_inside(const Window& w, size_t d, const Expr& o, const Expr& low, const Expr& high) {
  const Expr start = o * Expr(w.strides[d]) - Expr(w.pads[d]), step = Expr(w.dilations[d]);
  const Expr first = kernel::max(Expr(0), kernel::floordiv(low - start + step - Expr(1), step));
  const Expr end = kernel::min(Expr(w.kernel[d]), kernel::floordiv(high - start + step - Expr(1), step));
  return end - first;
}

void lower_average_pool(LowerContext& c) {
  const Window w = pool_window(c.node());
  const Shape& x = c.in_type(0).shape;
  const bool with_pads = c.node().attr<int64_t>("count_include_pad") != 0, ceil = ceil_mode(c.node());
  const DType dtype = accumulator_type(c.in_type(0).dtype);
  // Every window is whole unless it overhangs, or reaches into padding that does not count.
  const bool whole = !ceil && (with_pads || !w.padded());
  Walk walk;
  walk.grain = 1024;
  for_each(c, c.out_memory().type(), walk, [&](const Coords& at) {
    Register sum(c.b(), "sum", kernel::broadcast(kernel::constant({dtype, 1}, 0), at.lanes));
    w.for_each_tap(
        c, at, x[2], x[3],
        [&](const Coords& tap, Expr, Expr) { sum.set(sum.get() + kernel::cast({dtype, 1}, c.load(0, tap))); }, ceil);
    Expr count = Expr(w.kernel[0] * w.kernel[1]);
    if (!whole) {
      count = Expr(1);
      for (size_t d = 0; d < 2; ++d) {
        const Expr low = with_pads ? Expr(-w.pads[d]) : Expr(0);
        const Expr high = c.dim(x[d + 2]) + (with_pads ? Expr(w.pads[d + 2]) : Expr(0));
        count = count * taps_inside(w, d, at.at(static_cast<int>(d) + 2), low, high);
      }
    }
    c.store(at, sum.get() / kernel::broadcast(kernel::cast({dtype, 1}, count), at.lanes));
  });
}

}  // namespace

OpDef define_average_pool2d() {
  OpDef d = pooling("AveragePool2D",
                    "y[n, c, i, j] = mean of x over the window: over its taps inside the image, or with "
                    "count_include_pad over those in the padding too, which are 0.",
                    real_dtypes());
  d.attributes.push_back(optional("count_include_pad", AttrKind::integer, "1: padding counts", int64_t{0}));
  d.lower = lower_average_pool;
  d.samples = [] {
    std::vector<Sample> all = pool_samples({1.375, 2, 6.375, -5.5, 9.5, -11.5});
    std::vector<Sample> with_pads = pool_samples({1.375, 2, 6.375, -5.5, 4.75, -5.75});
    for (Sample& s : with_pads) s.attributes["count_include_pad"] = int64_t{1};
    append(all, std::move(with_pads), "with_pads_");
    return all;
  };
  return d;
}

}  // namespace cuvil::ops
