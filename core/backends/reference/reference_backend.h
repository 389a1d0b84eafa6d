// The reference backend: kernels are interpreted. Slow and exact, the oracle of the others.
#pragma once

#include "core/backends/backend.h"

namespace cuvil::backends::reference {

/// Lives as long as the process. compile() throws UnsupportedError: there is no code to keep. A kernel that breaks a
/// rule of memory writes what and where to the standard error stream and returns CUVIL_KERNEL_BROKEN.
const Backend& backend();

}  // namespace cuvil::backends::reference
