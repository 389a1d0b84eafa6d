#include "core/kernel/transform.h"

namespace cuvil::kernel {

// Unrolling first, because it makes indices constant; simplifying before vectorising, because a contiguous access is
// seen by its linear index; math last but for the clean-up, so that it is expanded once per vector.
Kernel lower_for_cpu(const Kernel& kernel, const TargetInfo& target) {
  Kernel k = unroll_loops(kernel);
  k = simplify(k);
  k = vectorize_loops(k, target.vector_bytes);
  k = expand_math(k);
  return simplify(k);
}

}  // namespace cuvil::kernel
