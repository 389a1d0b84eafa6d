#include "core/backends/cpu/cpu_backend.h"

#include <chrono>
#include <map>

#include "core/abi/cpu_features.h"
#include "core/backends/cpu/compile_kernels.h"
#include "core/backends/cpu/inspect.h"
#include "core/backends/cpu/jit.h"
#include "core/backends/cpu/link.h"
#include "core/base/env.h"
#include "core/base/error.h"

namespace cuvil::backends::cpu {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void dump_if_asked(std::span<const kernel::Kernel> kernels, const TargetInfo& target) {
  if (const auto folder = env::get("CUVIL_DUMP_DIR")) dump(kernels, target, *folder);
}

bool runs_here(const TargetInfo& target) {
  const bool same_arch = (target.arch == Arch::aarch64) == (host_arch() == CUVIL_ARCH_AARCH64);
  const uint64_t host = host_features() | (target.arch == Arch::aarch64 ? feature_bit(CUVIL_FEATURE_NEON) : 0);
  return same_arch && (target.features & ~host) == 0;
}

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }

  std::optional<std::string> refuse(const kernel::Kernel& kernel, const TargetInfo&) const override {
    std::optional<std::string> reason;
    for (const kernel::Phase& p : kernel.phases) {
      kernel::visit(
          p.body,
          [&](const kernel::StmtNode& s) {
            if (s.kind == kernel::StmtKind::loop && s.loop >= kernel::LoopKind::gpu_thread_x)
              reason = "kernel " + kernel.name + " is written for the threads of a GPU";
          },
          [](const kernel::ExprNode&) {});
    }
    return reason;
  }

  std::unique_ptr<KernelLibrary> load(std::span<const kernel::Kernel> kernels, const TargetInfo& target,
                                      CompileStatistics* statistics) const override {
    if (!runs_here(target))
      throw Error(CUVIL_TARGET_ERROR, "target " + target.name + " needs features that this processor lacks; compile " +
                                          "for \"host\", or save a .cvl for that machine");
    const auto start = Clock::now();
    check(kernels, target);
    CompiledKernels compiled = compile_kernels(kernels, target);
    auto library = load_objects(compiled, kernels);
    compiled.statistics.seconds = since(start);
    if (statistics) *statistics = compiled.statistics;
    return library;
  }

  CodeObject compile(std::span<const kernel::Kernel> kernels, const TargetInfo& target) const override {
    const auto start = Clock::now();
    check(kernels, target);
    CompiledKernels compiled = compile_kernels(kernels, target);
    std::vector<std::span<const uint8_t>> objects;
    for (const auto& o : compiled.objects) objects.emplace_back(o.bytes);
    std::vector<Export> exports;
    for (size_t i = 0; i < kernels.size(); ++i) {
      for (size_t p = 0; p < kernels[i].phases.size(); ++p) {
        const std::string phase = "_p" + std::to_string(p);
        exports.emplace_back(kernels[i].name + phase, compiled.objects[compiled.object_of[i]].symbol + phase);
      }
    }
    CodeObject code{link_shared(objects, exports, target.arch), compiled.statistics};
    code.statistics.seconds = since(start);
    code.statistics.code_bytes = static_cast<int64_t>(code.shared_object.size());
    return code;
  }

 private:
  void check(std::span<const kernel::Kernel> kernels, const TargetInfo& target) const {
    std::map<std::string_view, int> names;
    for (const kernel::Kernel& k : kernels) {
      CUVIL_CHECK(++names[k.name] == 1, "two kernels are named " + k.name);
      if (const auto reason = refuse(k, target)) throw_unsupported(*reason);
    }
    dump_if_asked(kernels, target);
  }
};

}  // namespace

const Backend& backend() {
  static const CpuBackend the_backend;
  return the_backend;
}

}  // namespace cuvil::backends::cpu
