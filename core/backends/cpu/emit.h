// Kernel IR to LLVM IR. docs/backend_cpu.md says how each construct is mapped.
#pragma once

#include <memory>
#include <string>

#include "core/base/target_info.h"
#include "core/kernel/ir.h"

namespace llvm {
class LLVMContext;
class Module;
class TargetMachine;
}  // namespace llvm

namespace cuvil::backends::cpu {

/// One function NAME_pI of the kernel's ABI (core/abi/abi.h) per phase, NAME being `name`. The kernel is what
/// kernel::lower_for_cpu returns: no vector or unroll loops, no transcendentals; anything else throws InternalError.
/// The module calls nothing but LLVM intrinsics that become instructions.
std::unique_ptr<llvm::Module> emit(const kernel::Kernel& kernel, const std::string& name, const TargetInfo& target,
                                   const llvm::TargetMachine& machine, llvm::LLVMContext& context);

}  // namespace cuvil::backends::cpu
