#include "core/ops/normalization.h"

#include "core/ops/window.h"

namespace cuvil::ops {

using kernel::Expr;
namespace k = cuvil::kernel;

AttrSpec epsilon_attribute() { return optional("epsilon", AttrKind::real, "added to the variance", 1e-5); }

Expr at_lanes(const Expr& row_value, const Coords& at) { return k::broadcast(row_value, at.lanes); }

RowStatistics statistics(LowerContext& c, ReduceNest& nest, const Coords& kept, double epsilon) {
  const k::Type type{accumulator_type(c.in_type(0).dtype), 1};
  const Expr zero = k::constant(type, 0);
  const Expr count = k::broadcast(k::cast(type, c.dim(nest.count())), kept.lanes);
  const auto load = [&](const Coords& at) { return k::cast(type, c.load(0, at)); };
  const Expr mean = c.b().let("mean", nest.fold(kept, k::Op::add, zero, load) / count);
  const Expr squares = nest.fold(kept, k::Op::add, zero, [&](const Coords& at) {
    const Expr deviation = c.b().let("d", load(at) - at_lanes(mean, at));
    return deviation * deviation;
  });
  const k::Type row = type.with_lanes(kept.lanes);
  const Expr variance = squares / count + k::constant(row, epsilon);
  return {mean, c.b().let("factor", k::constant(row, 1) / k::make(k::Op::sqrt, {variance}))};
}

}  // namespace cuvil::ops
