// Mean, variance and scaling: what the normalisations share.
#pragma once

#include "core/ops/define.h"
#include "core/ops/loops.h"

namespace cuvil::ops {

AttrSpec epsilon_attribute();

/// Scale and offset of one row (or one vector of rows): y = (x - mean) * factor.
struct RowStatistics {
  kernel::Expr mean, factor;
};
/// Two passes over the reduced elements: the mean, then the mean square of what deviates from it (population variance);
/// factor = 1 / sqrt(variance + epsilon). Sums are kept in f32 at least.
RowStatistics statistics(LowerContext& c, ReduceNest& nest, const Coords& kept, double epsilon);
/// A row value at the lanes of an element.
kernel::Expr at_lanes(const kernel::Expr& row_value, const Coords& at);

}  // namespace cuvil::ops
