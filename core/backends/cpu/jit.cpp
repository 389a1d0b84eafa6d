#include "core/backends/cpu/jit.h"

#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>

#include <map>

#include "core/base/error.h"

namespace cuvil::backends::cpu {
namespace {

template <class T>
T checked(llvm::Expected<T> value) {
  if (!value) throw_internal("loading compiled kernels failed: " + llvm::toString(value.takeError()));
  return std::move(*value);
}
void check(llvm::Error error) {
  if (error) throw_internal("loading compiled kernels failed: " + llvm::toString(std::move(error)));
}

/// A session with one linking layer: kernels need neither a platform nor symbols of the process.
class JitLibrary final : public KernelLibrary {
 public:
  JitLibrary(const CompiledKernels& compiled, std::span<const kernel::Kernel> kernels)
      : session_(checked(llvm::orc::SelfExecutorProcessControl::Create())),
        memory_(checked(llvm::jitlink::InProcessMemoryManager::Create())),
        layer_(session_, *memory_) {
    llvm::orc::JITDylib& code = session_.createBareJITDylib("kernels");
    for (const CompiledKernels::Object& o : compiled.objects) {
      const llvm::StringRef bytes(reinterpret_cast<const char*>(o.bytes.data()), o.bytes.size());
      check(layer_.add(code, llvm::MemoryBuffer::getMemBufferCopy(bytes, o.symbol)));
    }
    llvm::orc::SymbolLookupSet wanted;
    std::vector<std::pair<std::string, llvm::orc::SymbolStringPtr>> names;
    for (size_t i = 0; i < kernels.size(); ++i) {
      for (size_t p = 0; p < kernels[i].phases.size(); ++p) {
        const std::string phase = "_p" + std::to_string(p);
        names.emplace_back(kernels[i].name + phase,
                           session_.intern(compiled.objects[compiled.object_of[i]].symbol + phase));
        wanted.add(names.back().second);
      }
    }
    wanted.sortByName();
    wanted.removeDuplicates();
    const auto found = checked(session_.lookup({{&code, llvm::orc::JITDylibLookupFlags::MatchAllSymbols}}, wanted));
    for (const auto& [name, symbol] : names) functions_[name] = found.at(symbol).getAddress().toPtr<cuvil_kernel_fn>();
  }
  ~JitLibrary() override { llvm::consumeError(session_.endSession()); }

  cuvil_kernel_fn find(std::string_view symbol) const override {
    const auto found = functions_.find(symbol);
    return found == functions_.end() ? nullptr : found->second;
  }

 private:
  llvm::orc::ExecutionSession session_;
  std::unique_ptr<llvm::jitlink::JITLinkMemoryManager> memory_;
  llvm::orc::ObjectLinkingLayer layer_;
  std::map<std::string, cuvil_kernel_fn, std::less<>> functions_;
};

}  // namespace

std::unique_ptr<KernelLibrary> load_objects(const CompiledKernels& compiled, std::span<const kernel::Kernel> kernels) {
  return std::make_unique<JitLibrary>(compiled, kernels);
}

}  // namespace cuvil::backends::cpu
