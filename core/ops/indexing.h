// Indices that are data: checked before they address anything.
#pragma once

#include "core/ops/define.h"
#include "core/ops/loops.h"

namespace cuvil::ops {

/// `index` (any integer type, a scalar) as a position on an axis of `size`: negative ones count from the end; outside
/// of [-size, size) the kernel fails with CUVIL_KERNEL_INDEX_OUT_OF_RANGE before it reads or writes.
kernel::Expr checked_index(LowerContext& c, const kernel::Expr& index, const kernel::Expr& size);
/// i64 or i32.
void need_index(const InferContext& c, size_t i);
/// Combination of an old element and an update by attribute `reduction`: none, add, mul, min, max.
kernel::Expr combine(const std::string& reduction, const kernel::Expr& old, const kernel::Expr& update);
AttrSpec reduction_attribute();
void check_reduction(const InferContext& c);

}  // namespace cuvil::ops
