// Running sums and products.
#pragma once

#include "core/ops/define.h"
#include "core/ops/lower.h"

namespace cuvil::ops {

/// An operator of x along attribute axis, with attributes exclusive and reverse: y[i] = y[i - 1] `op` x[i], from
/// `start`, which is neutral for `op`. Samples are the caller's.
OpDef cumulative(std::string_view name, std::string_view doc, kernel::Op op, double start);

}  // namespace cuvil::ops
