// Kernel IR as OpenCL C 1.2 text: keeps Kernel IR more than a CPU's. Devices, memory and launches are the GPU
// backend's, which is not there yet; the text is complete and is run by the tests.
#pragma once

#include <optional>
#include <string>

#include "core/kernel/ir.h"

namespace cuvil::backends {

/// Nothing, or why the kernel cannot be said in OpenCL C: a sentence for users.
std::optional<std::string> refuse_opencl(const kernel::Kernel& kernel);

/// One `__kernel void NAME_pI(buffers..., long dims..., __global int* status)` per phase. A work-group is a task (group
/// number 0 of dimension 0 is task 0); loops of kind gpu_thread_* are shared among its work-items, all other code of a
/// task must be run by one work-item or be the same for all (allocations in `reg` are per work-item, in `shared` and
/// `scratch` per group). A nonzero *status is what `fail` returned. Throws UnsupportedError where refuse_opencl
/// refuses.
std::string print_opencl(const kernel::Kernel& kernel);

}  // namespace cuvil::backends
