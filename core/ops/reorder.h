// Constants from one layout to another: what the operator Reorder does, at memory speed, for weights at compile time.
#pragma once

#include "core/ir/tensor.h"

namespace cuvil::ops {

/// The same logical tensor in `layout`; padding of blocks is 0. The source may be blocked too.
ir::Tensor reorder(const ir::Tensor& tensor, const ir::Layout& layout);

}  // namespace cuvil::ops
