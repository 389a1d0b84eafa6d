// What a kernel becomes on the way to machine code, as text: for `--emit`, CUVIL_DUMP_DIR and tests.
#pragma once

#include <span>
#include <string>

#include "core/base/target_info.h"
#include "core/kernel/ir.h"

namespace cuvil::backends::cpu {

/// LLVM IR before or after the optimiser.
std::string llvm_ir(const kernel::Kernel& kernel, const TargetInfo& target, bool optimized = true);
/// Assembly, in AT&T syntax on x86.
std::string assembly(const kernel::Kernel& kernel, const TargetInfo& target);

/// Writes NAME.kir, NAME.ll and NAME.s for each kernel into the folder, which is made if missing. Throws InternalError
/// if a file cannot be written.
void dump(std::span<const kernel::Kernel> kernels, const TargetInfo& target, const std::string& folder);

}  // namespace cuvil::backends::cpu
