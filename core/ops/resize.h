// Which input positions an output position of Resize is made of, for its lowering and for schedules.
#pragma once

#include <vector>

#include "core/ops/define.h"
#include "core/ops/lower.h"

namespace cuvil::ops {

struct ResizeTap {
  kernel::Expr index;   ///< i64, inside the input
  kernel::Expr weight;  ///< f32; null: 1
  kernel::Expr inside;  ///< bool, the same for all taps: false where y is the extrapolation value; null: true
};
/// The taps along one axis at output position `o` (i64, a scalar or a vector): one for nearest, two for linear, four
/// for cubic, more with antialias. An axis that keeps its size has one tap at `o`.
std::vector<ResizeTap> resize_taps(LowerContext& c, int axis, const kernel::Expr& o);
/// True if the axis is copied unchanged.
bool resize_keeps(const ir::Node& node, int axis);

}  // namespace cuvil::ops
