// The CPU backend: Kernel IR through LLVM to machine code, at run time (ORC) or ahead of time (lld).
#pragma once

#include "core/backends/backend.h"

namespace cuvil::backends::cpu {

/// Lives as long as the process. load() throws TargetError for a target that this machine cannot run.
const Backend& backend();

}  // namespace cuvil::backends::cpu
