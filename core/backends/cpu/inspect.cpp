#include "core/backends/cpu/inspect.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <filesystem>
#include <fstream>

#include "core/backends/cpu/codegen.h"
#include "core/backends/cpu/emit.h"
#include "core/base/error.h"
#include "core/kernel/parse.h"
#include "core/kernel/transform.h"

namespace cuvil::backends::cpu {
namespace {

std::unique_ptr<llvm::Module> emit_lowered(const kernel::Kernel& kernel, const TargetInfo& target,
                                           const llvm::TargetMachine& machine, llvm::LLVMContext& context) {
  return emit(kernel::lower_for_cpu(kernel, target), kernel.name, target, machine, context);
}

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  if (!out.flush()) throw_internal("cannot write " + file.string() + " (CUVIL_DUMP_DIR)");
}

}  // namespace

std::string llvm_ir(const kernel::Kernel& kernel, const TargetInfo& target, bool optimized) {
  const auto machine = make_machine(target);
  llvm::LLVMContext context;
  const auto module = emit_lowered(kernel, target, *machine, context);
  if (optimized) optimize(*module, *machine);
  std::string text;
  llvm::raw_string_ostream out(text);
  module->print(out, nullptr);
  return text;
}

std::string assembly(const kernel::Kernel& kernel, const TargetInfo& target) {
  const auto machine = make_machine(target);
  llvm::LLVMContext context;
  const auto module = emit_lowered(kernel, target, *machine, context);
  optimize(*module, *machine);
  const std::vector<uint8_t> text = generate(*module, *machine, Output::assembly);
  return {text.begin(), text.end()};
}

void dump(std::span<const kernel::Kernel> kernels, const TargetInfo& target, const std::string& folder) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  for (const kernel::Kernel& k : kernels) {
    const std::filesystem::path file = std::filesystem::path(folder) / k.name;
    write(file.string() + ".kir", kernel::print(k));
    write(file.string() + ".ll", llvm_ir(k, target));
    write(file.string() + ".s", assembly(k, target));
  }
}

}  // namespace cuvil::backends::cpu
