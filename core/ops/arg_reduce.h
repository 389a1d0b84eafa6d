// ArgMax and ArgMin.
#pragma once

#include "core/ops/define.h"

namespace cuvil::ops {

OpDef arg_reduction(std::string_view name, std::string_view doc, bool max);

}  // namespace cuvil::ops
