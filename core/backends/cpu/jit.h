// Objects made callable in this process by LLVM's ORC.
#pragma once

#include <memory>

#include "core/backends/backend.h"
#include "core/backends/cpu/compile_kernels.h"

namespace cuvil::backends::cpu {

/// Throws InternalError if an object does not load.
std::unique_ptr<KernelLibrary> load_objects(const CompiledKernels& compiled, std::span<const kernel::Kernel> kernels);

}  // namespace cuvil::backends::cpu
