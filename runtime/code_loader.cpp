#include "runtime/code_loader.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/error.h"

namespace cuvil::runtime {

namespace {

bool write_all(int fd, const void* data, size_t bytes) {
  const char* p = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = write(fd, p, bytes);
    if (n <= 0) return false;
    p += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

bool open_object(const char* path, Code* code, char* reason, size_t room) {
  code->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (code->handle) return true;
  const char* text = dlerror();
  snprintf(reason, room, "%.200s", text ? text : "dlopen failed");
  return false;
}

bool from_memory(const void* object, size_t bytes, Code* code, char* reason, size_t room) {
  constexpr unsigned kMfdExec = 0x10;  // Linux 6.3: this file is meant to be run
  int fd = memfd_create("cuvil-code", MFD_CLOEXEC | MFD_ALLOW_SEALING | kMfdExec);
  if (fd < 0) fd = memfd_create("cuvil-code", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0 || !write_all(fd, object, bytes)) {
    snprintf(reason, room, "no memory file");
    if (fd >= 0) close(fd);
    return false;
  }
  fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/fd/%d", static_cast<int>(getpid()), fd);
  if (open_object(path, code, reason, room)) {
    code->fd = fd;
    return true;
  }
  close(fd);
  return false;
}

/// Through a fresh folder that only this user can enter.
bool from_file(const char* parent, const char* below, const void* object, size_t bytes, Code* code, char* reason,
               size_t room) {
  char folder[512], path[600];
  const int n = snprintf(folder, sizeof(folder), "%s%s/cuvil-code-XXXXXX", parent, below);
  if (n < 0 || static_cast<size_t>(n) >= sizeof(folder) || !mkdtemp(folder)) {
    snprintf(reason, room, "no private folder in %.100s%s", parent, below);
    return false;
  }
  snprintf(path, sizeof(path), "%s/code.so", folder);
  const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
  bool loaded = fd >= 0 && write_all(fd, object, bytes);
  if (fd >= 0) close(fd);
  if (!loaded) snprintf(reason, room, "cannot write to %.100s", folder);
  loaded = loaded && open_object(path, code, reason, room);
  unlink(path);
  rmdir(folder);
  return loaded;
}

}  // namespace

cuvil_status load_code(const void* object, size_t bytes, Code* code) {
  char memory[256] = "", file[256] = "";
  if (from_memory(object, bytes, code, memory, sizeof(memory))) return CUVIL_OK;
  const char* cache = getenv("CUVIL_CACHE_DIR");
  const char* home = getenv("HOME");
  const char* places[][2] = {{cache && strcmp(cache, "off") != 0 ? cache : "", ""},
                             {home ? home : "", "/.cache"},
                             {"/tmp", ""},
                             {"/var/tmp", ""}};
  for (const auto& place : places) {
    if (place[0][0] != '/') continue;
    if (from_file(place[0], place[1], object, bytes, code, file, sizeof(file))) return CUVIL_OK;
  }
  return fail(CUVIL_ARTIFACT_ERROR, "the code cannot be loaded: from memory: %s; from a file: %s", memory, file);
}

void unload_code(Code* code) {
  if (code->handle) dlclose(code->handle);
  if (code->fd >= 0) close(code->fd);
  *code = {};
}

cuvil_kernel_fn find_kernel(const Code& code, const char* symbol) {
  return reinterpret_cast<cuvil_kernel_fn>(dlsym(code.handle, symbol));
}

}  // namespace cuvil::runtime
