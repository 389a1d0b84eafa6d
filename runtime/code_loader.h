// Code of a .cvl: a position-independent shared object that imports nothing.
#pragma once

#include <cstddef>

#include "core/abi/abi.h"

namespace cuvil::runtime {

struct Code {
  void* handle = nullptr;
  int fd =
      -1;  ///< of the memory file; open as long as the code is loaded, for debuggers and so that its name is unique
};

/// Loads the object from a memory file through /proc/PID/fd/N (gdb hangs on /proc/self/fd/N); where that is not allowed
/// (noexec, SELinux) from a private file in CUVIL_CACHE_DIR, ~/.cache, /tmp or /var/tmp that is gone again on return.
/// ArtifactError with every reason otherwise.
cuvil_status load_code(const void* object, size_t bytes, Code* code);
void unload_code(Code* code);
/// Null if there is no such symbol.
cuvil_kernel_fn find_kernel(const Code& code, const char* symbol);

}  // namespace cuvil::runtime
