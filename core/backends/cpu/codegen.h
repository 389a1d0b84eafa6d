// LLVM: target machines, the optimiser's short pipeline, machine code.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/target_info.h"
#include "core/kernel/ir.h"

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace cuvil::backends::cpu {

/// Part of the key of cached objects.
std::string llvm_version();

/// A machine for position-independent code. Costs little; not shared between threads. Throws TargetError.
std::unique_ptr<llvm::TargetMachine> make_machine(const TargetInfo& target);

/// Runs the passes that emitted kernels profit from. Loops are explicit in Kernel IR: nothing is unrolled, vectorized
/// or turned into calls.
void optimize(llvm::Module& module, llvm::TargetMachine& machine);

enum class Output : uint8_t { object, assembly };
/// Instruction selection; may be run once per module.
std::vector<uint8_t> generate(llvm::Module& module, llvm::TargetMachine& machine, Output output);

/// From a kernel as schedules write it to an object (ELF) whose symbols are NAME_p0, NAME_p1, ...
std::vector<uint8_t> compile_object(const kernel::Kernel& kernel, const std::string& name, const TargetInfo& target,
                                    llvm::TargetMachine& machine);

}  // namespace cuvil::backends::cpu
