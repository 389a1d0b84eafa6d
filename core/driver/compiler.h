// The compiler as a library: import, build, run, save. What `cuvil/compiler.hpp`, the Python module and the tools use.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/backends/backend.h"
#include "core/driver/pipeline.h"
#include "core/ir/graph.h"
#include "cuvil/runtime.h"

namespace cuvil::driver {

struct BuildOptions {
  std::string target = "cpu";        ///< "cpu" (this machine), or a named CPU target to cross-compile for (save only)
  std::string precision = "fp32";    ///< others are refused by name
  std::string numerics = "default";  ///< or "strict"
  std::string backend = "cpu";       ///< "reference": the interpreter
  bool optimize = true;              ///< false: no optional pass, every operator by its plain loop nest
};

/// A compiled model in this process. Immutable; runs through contexts of model().
class Executable {
 public:
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  /// The model for the runtime's C API (cuvil_context_create, cuvil_run, ...). Valid as long as this object lives.
  cuvil_model* model() const { return model_; }
  const Lowered& lowered() const { return lowered_; }
  const BuildOptions& options() const { return options_; }
  const TargetInfo& target() const { return target_; }
  const backends::CompileStatistics& statistics() const { return statistics_; }
  double build_seconds() const { return build_seconds_; }
  /// Steps with schedule and sizes, times of the pipeline, compile statistics: text for people.
  std::string report() const;
  std::string memory_plan() const { return plan::print_memory(lowered_.plan); }

  /// Writes a .cvl. No targets: the host and a baseline of its architecture. "host" is this machine.
  void save(const std::string& path, const std::vector<std::string>& targets = {}) const;

 private:
  friend std::shared_ptr<Executable> build(const ir::Graph& graph, const BuildOptions& options);
  Executable() : lowered_{ir::Graph(), {}, {}} {}

  BuildOptions options_;
  TargetInfo target_;
  ir::Graph source_;  ///< before passes: other targets are compiled from it
  Lowered lowered_;
  backends::CompileStatistics statistics_;
  double build_seconds_ = 0;
  cuvil_model* model_ = nullptr;  ///< owns code and constants
};

/// Compiles for this machine and loads the code. Throws cuvil::Error.
std::shared_ptr<Executable> build(const ir::Graph& graph, const BuildOptions& options = {});

/// Compiles for `targets` and writes a .cvl without loading anything.
void save(const ir::Graph& graph, const BuildOptions& options, const std::string& path,
          const std::vector<std::string>& targets);

/// What a target's code looks like: format is "cir" (after passes), "kir" (Kernel IR), "llvm" or "asm".
std::string emit(const ir::Graph& graph, const BuildOptions& options, const std::string& format);

}  // namespace cuvil::driver
