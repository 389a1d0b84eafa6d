// The hand-written kernels of tests/kernel/text.
#pragma once

#include <string>

#include "core/kernel/ir.h"

namespace cuvil::kernel::testing {

/// Contents of tests/kernel/text/NAME.kir.
std::string kernel_text(const std::string& name);
/// The same, parsed and verified.
Kernel kernel_from_text(const std::string& name);

}  // namespace cuvil::kernel::testing
