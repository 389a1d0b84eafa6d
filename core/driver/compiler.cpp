#include "core/driver/compiler.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "core/artifact/program.h"
#include "core/artifact/writer.h"
#include "core/backends/cpu/cpu_backend.h"
#include "core/backends/cpu/inspect.h"
#include "core/backends/reference/reference_backend.h"
#include "core/kernel/parse.h"
#include "runtime/executor.h"

namespace cuvil::driver {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void check_options(const BuildOptions& o) {
  if (o.precision == "fp16" || o.precision == "bf16" || o.precision == "int8" || o.precision == "auto")
    throw_unsupported("precision=\"" + o.precision + "\" is not implemented yet. Use precision=\"fp32\".");
  if (o.precision != "fp32")
    throw_unsupported("unknown precision \"" + o.precision + "\"; there are fp32, fp16, bf16, int8 and auto");
  if (o.numerics != "default" && o.numerics != "strict")
    throw_unsupported("unknown numerics \"" + o.numerics + "\"; there are default and strict");
}

const backends::Backend& backend_named(const std::string& name) {
  if (name == "cpu") return backends::cpu::backend();
  if (name == "reference") return backends::reference::backend();
  throw Error(CUVIL_TARGET_ERROR, "unknown backend \"" + name + "\"; there are cpu and reference");
}

TargetInfo target_named(const std::string& name) {
  return name == "cpu" || name == "host" ? TargetInfo::host() : TargetInfo::named(name);
}

/// What a model in this process stands on; lives until the model and its contexts are gone.
struct Code {
  std::unique_ptr<backends::KernelLibrary> library;
  std::vector<ir::Tensor> constants;
  std::vector<const void*> pointers;
};

/// Kernels want 64-byte alignment; a tensor that lies elsewhere in a model file is copied.
ir::Tensor aligned(const ir::Tensor& t) {
  if (reinterpret_cast<uintptr_t>(t.raw()) % CUVIL_ALIGNMENT == 0) return t;
  auto [copy, bytes] = ir::Tensor::allocate(t.type);
  std::memcpy(bytes, t.raw(), static_cast<size_t>(t.bytes()));
  return copy;
}

cuvil_kernel_fn find_function(void* user, const char* symbol) {
  return static_cast<Code*>(user)->library->find(symbol);
}

cuvil_model* make_model(const plan::Plan& plan, std::unique_ptr<backends::KernelLibrary> library) {
  auto code = std::make_unique<Code>();
  code->library = std::move(library);
  for (const ir::Tensor& t : plan.constants) {
    code->constants.push_back(aligned(t));
    code->pointers.push_back(code->constants.back().raw());
  }
  const std::vector<uint8_t> program = artifact::serialize(plan, artifact::ConstantHashes::unknown);
  runtime::ProgramSource source;
  source.program = program.data();
  source.program_bytes = program.size();
  source.constants = code->pointers.data();
  source.constant_count = code->pointers.size();
  source.find = find_function;
  source.release = [](void* user) { delete static_cast<Code*>(user); };
  source.user = code.release();  // from here on release() owns it, on failure too
  cuvil_model* model = nullptr;
  const cuvil_status status = runtime::model_from_program(source, &model);
  if (status != CUVIL_OK) throw_internal(std::string("the plan is not runnable: ") + cuvil_last_error());
  return model;
}

/// The oldest machine of an architecture that Cuvil compiles for.
std::string baseline_of(Arch arch) { return arch == Arch::x86_64 ? "x86-64-v3" : "aarch64"; }

std::vector<TargetInfo> resolve_targets(const std::vector<std::string>& names) {
  std::vector<TargetInfo> targets;
  auto add = [&](TargetInfo t) {
    const bool known =
        std::any_of(targets.begin(), targets.end(), [&](const TargetInfo& o) { return o.key() == t.key(); });
    if (!known) targets.push_back(std::move(t));
  };
  if (names.empty()) {
    const TargetInfo host = TargetInfo::host();
    add(host);
    add(TargetInfo::named(baseline_of(host.arch)));
  }
  for (const std::string& n : names) add(target_named(n));
  return targets;
}

std::string format_table_row(const char* left, double right, const char* unit) {
  char line[128];
  std::snprintf(line, sizeof line, "  %-36s %10.3f %s\n", left, right, unit);
  return line;
}

}  // namespace

Executable::~Executable() { cuvil_close(model_); }

std::shared_ptr<Executable> build(const ir::Graph& graph, const BuildOptions& options) {
  check_options(options);
  const auto begin = std::chrono::steady_clock::now();
  std::shared_ptr<Executable> e(new Executable());
  e->options_ = options;
  e->target_ = target_named(options.target);
  e->source_ = graph.clone();
  e->lowered_ = lower(graph.clone(), e->target_, options.numerics == "strict", options.optimize);
  const auto compiled = std::chrono::steady_clock::now();
  auto library = backend_named(options.backend).load(e->lowered_.plan.kernels, e->target_, &e->statistics_);
  e->lowered_.times.push_back({"compile_kernels", seconds_since(compiled), static_cast<int>(e->statistics_.unique)});
  e->model_ = make_model(e->lowered_.plan, std::move(library));
  e->build_seconds_ = seconds_since(begin);
  return e;
}

std::string Executable::report() const {
  std::string out = "target " + target_.name + " (" + target_.cpu + "), numerics " + options_.numerics + "\n\n";
  out += plan::print(lowered_.plan) + "\n" + memory_plan() + "\nbuild\n";
  for (const StepTime& t : lowered_.times) out += format_table_row(t.name.c_str(), 1e3 * t.seconds, "ms");
  out += format_table_row("total", 1e3 * build_seconds_, "ms");
  out += "kernels: " + std::to_string(statistics_.kernels) + ", different: " + std::to_string(statistics_.unique) +
         ", from the cache: " + std::to_string(statistics_.from_cache) + "\n";
  return out;
}

void Executable::save(const std::string& path, const std::vector<std::string>& targets) const {
  driver::save(source_, options_, path, targets);
}

void save(const ir::Graph& graph, const BuildOptions& options, const std::string& path,
          const std::vector<std::string>& targets) {
  check_options(options);
  artifact::File file;
  file.producer = std::string("cuvil ") + cuvil_version();
  file.name = graph.name;
  file.metadata = {{"source", graph.source}, {"precision", options.precision}, {"numerics", options.numerics}};
  std::vector<Lowered> keep;  // their constants are written from where they lie
  const std::vector<TargetInfo> all = resolve_targets(targets);
  keep.reserve(all.size());
  for (const TargetInfo& target : all) {
    keep.push_back(lower(graph.clone(), target, options.numerics == "strict", options.optimize));
    const plan::Plan& plan = keep.back().plan;
    file.variants.push_back(
        artifact::make_variant(plan, target, backends::cpu::backend().compile(plan.kernels, target).shared_object));
  }
  artifact::write_file(file, path);
}

std::string emit(const ir::Graph& graph, const BuildOptions& options, const std::string& format) {
  check_options(options);
  const TargetInfo target = target_named(options.target);
  const Lowered lowered = lower(graph.clone(), target, options.numerics == "strict", options.optimize);
  if (format == "cir") return ir::print(lowered.graph, false);
  std::string out;
  for (const kernel::Kernel& k : lowered.plan.kernels) {
    if (format == "kir")
      out += kernel::print(k) + "\n";
    else if (format == "llvm")
      out += backends::cpu::llvm_ir(k, target) + "\n";
    else if (format == "asm")
      out += backends::cpu::assembly(k, target) + "\n";
    else
      throw_unsupported("unknown format \"" + format + "\"; there are cir, kir, llvm and asm");
  }
  return out;
}

}  // namespace cuvil::driver
