#include "core/ops/arg_reduce.h"

namespace cuvil::ops {

OpDef define_argmax() {
  return arg_reduction("ArgMax", "y = index of the largest element along axis, the first of equal ones; a NaN wins.",
                       true);
}

}  // namespace cuvil::ops
