// Transposing squares of values in registers.
#pragma once

#include <vector>

#include "core/kernel/ir.h"

namespace cuvil::schedules {

/// The transpose of n vectors of n lanes, n a power of two: log2(n) rounds of interleaving vector i with i + n/2
/// (unpack, zip or two-source permute instructions). Emits lets.
std::vector<kernel::Expr> transpose_square(kernel::Builder& b, std::vector<kernel::Expr> rows);

}  // namespace cuvil::schedules
