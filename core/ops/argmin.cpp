#include "core/ops/arg_reduce.h"

namespace cuvil::ops {

OpDef define_argmin() {
  return arg_reduction("ArgMin", "y = index of the smallest element along axis, the first of equal ones; a NaN wins.",
                       false);
}

}  // namespace cuvil::ops
