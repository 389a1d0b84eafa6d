// Kernels for aarch64, run by qemu on this machine.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/kernel/ir.h"

namespace cuvil::backends::testing {

/// A kernel of the program, the values of its dims and its parameters' memory.
struct QemuJob {
  const kernel::Kernel* kernel = nullptr;
  std::vector<int64_t> dims;
  std::vector<std::span<const unsigned char>> memory;
};
struct QemuResult {
  int64_t code = 0;
  std::vector<std::vector<unsigned char>> memory;  ///< of all parameters, afterwards
};

/// Kernels compiled into one shared object, in a temporary folder of its own.
class QemuProgram {
 public:
  /// `target`: "aarch64", "aarch64-dotprod"; `cpu`: qemu's name of a processor that has just these features.
  QemuProgram(std::span<const kernel::Kernel> kernels, const std::string& target, std::string cpu);
  ~QemuProgram();
  QemuProgram(const QemuProgram&) = delete;
  QemuProgram& operator=(const QemuProgram&) = delete;
  /// False where the cross compiler or qemu was not found when the tests were configured.
  static bool available();
  /// Runs all jobs in one process, each kernel's phases one after the other in one task range. Throws if that fails.
  std::vector<QemuResult> run(std::span<const QemuJob> jobs) const;

 private:
  std::string folder_, cpu_;
};

}  // namespace cuvil::backends::testing
