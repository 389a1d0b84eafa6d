// The loop nest of a group of elementwise nodes: the values of one position of the result, from those of its operands.
#pragma once

#include <string>

#include "core/ops/lower.h"

namespace cuvil::ops {

/// Where all tensors of the group lie alike (same layout, or scalars and channel vectors beside it) the nest walks
/// memory, padding of blocks included: neighbouring axes that every tensor has or every tensor lacks become one.
/// Otherwise it walks the first result's layout through coordinates. Internal error if results differ in shape.
kernel::Kernel lower_elementwise(const Group& group, const TargetInfo& target, std::string kernel_name);

}  // namespace cuvil::ops
