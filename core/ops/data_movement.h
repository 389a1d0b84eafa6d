// Index arithmetic that operators which move data share.
#pragma once

#include <vector>

#include "core/ops/lower.h"

namespace cuvil::ops {

/// The row-major number of an element.
kernel::Expr flatten(LowerContext& c, const std::vector<kernel::Expr>& index, const Shape& shape);
/// The way back.
std::vector<kernel::Expr> unflatten(LowerContext& c, const kernel::Expr& number, const Shape& shape);

}  // namespace cuvil::ops
