#include "core/backends/cpu/codegen.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/OptBisect.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <mutex>

#include "core/backends/cpu/emit.h"
#include "core/base/error.h"
#include "core/kernel/transform.h"

namespace cuvil::backends::cpu {
namespace {

void initialize_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeAArch64AsmParser();
  });
}

/// Keeps back what undoes a schedule's work: the machine scheduler moves loads up past full register tiles, and loop
/// strength reduction makes a pointer of every access; both end in spills. Measured on ResNet-50's kernels: 152 vector
/// and 45 scalar spills and 504 moves in inner loops with them, none without, and half the compile time.
class KeepSourceOrder final : public llvm::OptPassGate {
 public:
  bool shouldRunPass(const llvm::StringRef pass, llvm::StringRef) override {
    return pass != "Loop Strength Reduction" && pass != "Machine Instruction Scheduler" &&
           pass != "PostRA Machine Instruction Scheduler";
  }
  bool isEnabled() const override { return true; }
};

}  // namespace

std::string llvm_version() { return LLVM_VERSION_STRING; }

std::unique_ptr<llvm::TargetMachine> make_machine(const TargetInfo& target) {
  initialize_once();
  const std::string triple = target.arch == Arch::aarch64 ? "aarch64-unknown-linux-gnu" : "x86_64-unknown-linux-gnu";
  std::string problem;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, problem);
  if (!found) throw Error(CUVIL_TARGET_ERROR, "LLVM has no code generator for " + triple + ": " + problem);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // a * b + c rounds twice unless the kernel says fma
  std::unique_ptr<llvm::TargetMachine> machine(
      found->createTargetMachine(triple, target.cpu, target.llvm_features, options, llvm::Reloc::PIC_,
                                 llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  if (!machine) throw Error(CUVIL_TARGET_ERROR, "LLVM cannot generate code for " + triple);
  return machine;
}

void optimize(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);

  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  llvm::LoopPassManager of_loops;
  of_loops.addPass(llvm::LICMPass(llvm::LICMOptions()));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(of_loops), /*UseMemorySSA=*/true));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  for (llvm::Function& f : module)
    if (!f.isDeclaration()) passes.run(f, functions);
}

std::vector<uint8_t> generate(llvm::Module& module, llvm::TargetMachine& machine, Output output) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  const auto type = output == Output::object ? llvm::CodeGenFileType::ObjectFile : llvm::CodeGenFileType::AssemblyFile;
  static KeepSourceOrder gate;  // without state, so for all threads
  module.getContext().setOptPassGate(gate);
  CUVIL_CHECK(!machine.addPassesToEmitFile(passes, out, nullptr, type), "LLVM cannot write this kind of file");
  passes.run(module);
  return {bytes.begin(), bytes.end()};
}

std::vector<uint8_t> compile_object(const kernel::Kernel& kernel, const std::string& name, const TargetInfo& target,
                                    llvm::TargetMachine& machine) {
  llvm::LLVMContext context;
  const kernel::Kernel lowered = kernel::lower_for_cpu(kernel, target);
  std::unique_ptr<llvm::Module> module = emit(lowered, name, target, machine, context);
  optimize(*module, machine);
  return generate(*module, machine, Output::object);
}

}  // namespace cuvil::backends::cpu
