// Rewrites of whole kernels. Each keeps the kernel's meaning; each is one file, of the function's name.
#pragma once

#include "core/base/target_info.h"
#include "core/kernel/ir.h"

namespace cuvil::kernel {

/// Folds constants, index arithmetic (x*1, x+0, (4*i+3)/4 with 0 <= known ranges, min/max/select with known outcome),
/// removes branches with a known condition, empty loops, loops of one iteration and unused lets. Float arithmetic is
/// folded only where exact for every input (x*1; never x+0 or x*0).
Kernel simplify(const Kernel& kernel);
Expr simplify(const Expr& expr);

/// Replaces every `unroll` loop by copies of its body.
Kernel unroll_loops(const Kernel& kernel);

/// Turns every `vector` loop into a serial loop over explicit vectors of `lanes` and a masked remainder. Accesses whose
/// last index moves by one with the loop become contiguous, those that do not move become broadcasts, others gathers;
/// a store that is neither becomes one store per lane. `lanes` counts elements of the widest type in the loop of
/// vector_bytes. A reg scalar that is only summed, or taken the min or max of, becomes a vector of partial results.
/// What cannot be vectorised becomes a serial loop. The rules: docs/kernel_transforms.md.
Kernel vectorize_loops(const Kernel& kernel, int vector_bytes);

/// Replaces transcendentals of f32, and of f16 and bf16 through f32, by arithmetic; f64 is an UnsupportedError. Error
/// bounds: docs/numerics.md, measured by a test.
Kernel expand_math(const Kernel& kernel);
Expr expand_math(const Expr& expr);

/// All of the above in the order the CPU code generator wants.
Kernel lower_for_cpu(const Kernel& kernel, const TargetInfo& target);

}  // namespace cuvil::kernel
