// The border between whoever provides code (the JIT, the .cvl loader) and the executor: a program, its constants and a
// function per kernel phase. The result is an ordinary cuvil_model; contexts and runs are those of cuvil/runtime.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuvil/runtime.h"

namespace cuvil::runtime {

/// All that the executor knows of code.
struct ProgramSource {
  /// FlatBuffer Program (core/abi/cvl.fbs), 8-byte aligned. Copied.
  const uint8_t* program = nullptr;
  size_t program_bytes = 0;
  /// One pointer per constant of the program, 64-byte aligned; the memory is not copied and outlives the model.
  const void* const* constants = nullptr;
  size_t constant_count = 0;
  /// Function of a symbol "NAME_pI", null if unknown. Called only while the model is made.
  cuvil_kernel_fn (*find)(void* user, const char* symbol) = nullptr;
  void* user = nullptr;
  /// Called once when the model and its contexts are gone (or making it failed): frees code and constants. May be null.
  void (*release)(void* user) = nullptr;
};

/// Validates the program and resolves its kernels. ArtifactError with a text naming the first broken rule.
cuvil_status model_from_program(const ProgramSource& source, cuvil_model** model);

}  // namespace cuvil::runtime
