// Parts of quantized operators that convolutions and matrix products share.
#pragma once

#include "core/frontends/onnx/context.h"

namespace cuvil::frontends::onnx {

/// Input `i` as i32 less its zero point, input `zero` (may be absent). A vector of zero points is one per row, with
/// `behind` axes behind that of rows; with none it lies along the last axis.
ir::Value* centred(OpContext& c, size_t i, size_t zero, int behind);
/// Input `i`, a scale, as f32; a vector as above.
ir::Value* scale_of(OpContext& c, size_t i, int behind);
/// Output 0: sums * (scales / scale of y), rounded, plus y's zero point, saturated. `scale` and `zero`: inputs.
void requantized(OpContext& c, ir::Value* sums, ir::Value* scales, size_t scale, size_t zero);

}  // namespace cuvil::frontends::onnx
