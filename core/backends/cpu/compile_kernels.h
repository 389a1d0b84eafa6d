// Many kernels to objects: equal ones once, from the cache where they are in it, the others in parallel.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/backends/backend.h"

namespace cuvil::backends::cpu {

struct CompiledKernels {
  struct Object {
    std::string symbol;          ///< its phases are SYMBOL_p0, ...; depends on what is computed, not on names
    std::vector<uint8_t> bytes;  ///< ELF, relocatable
  };
  std::vector<Object> objects;    ///< in the order of their first kernel
  std::vector<size_t> object_of;  ///< per kernel
  CompileStatistics statistics;
};

/// Throws what compiling the first failing kernel throws.
CompiledKernels compile_kernels(std::span<const kernel::Kernel> kernels, const TargetInfo& target);

}  // namespace cuvil::backends::cpu
