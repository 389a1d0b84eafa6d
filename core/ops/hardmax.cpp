#include "core/ops/softmax.h"
#include "core/ops/window.h"

namespace cuvil::ops {

OpDef define_hardmax() {
  OpDef d = softmax_like("Hardmax", "y = 1 at the first maximum along axis, else 0.");
  d.lower = [](LowerContext& c) {
    using kernel::Expr;
    const int axis = axis_of(c.node(), c.in_type(0).rank());
    const kernel::Type type{accumulator_type(c.in_type(0).dtype), 1};
    ReduceNest nest(c, c.in_type(0), {axis}, /*along=*/false);
    nest.for_each_kept([&](const Coords& kept) {
      const auto load = [&](Expr r) { return kernel::cast(type, c.load(0, kept.with(axis, std::move(r)))); };
      const Expr size = c.dim(c.in_type(0).shape[static_cast<size_t>(axis)]);
      Register best(c.b(), "best", load(Expr(0)));
      Register where(c.b(), "where", kernel::constant({DType::i64, static_cast<uint16_t>(kept.lanes)}, 0));
      c.b().loop("r", 1, size, kernel::LoopKind::serial, [&](Expr r) {
        const Expr x = c.b().let("x", load(r));
        const Expr take = c.b().let("take", x > best.get());
        best.set(kernel::select(take, x, best.get()));
        where.set(kernel::select(take, kernel::broadcast(r, kept.lanes), where.get()));
      });
      c.b().loop("r", size, [&](Expr r) {
        const kernel::Type lanes = type.with_lanes(kept.lanes);
        const Expr hit = where.get() == kernel::broadcast(r, kept.lanes);
        c.store(kept.with(axis, r), kernel::select(hit, kernel::constant(lanes, 1), kernel::constant(lanes, 0)));
      });
    });
  };
  d.samples = [] { return softmax_samples({0, 0, 1, 0, 0, 1}); };
  return d;
}

}  // namespace cuvil::ops
