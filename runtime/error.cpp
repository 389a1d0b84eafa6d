#include "runtime/error.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "cuvil/runtime.h"

namespace cuvil::runtime {

namespace {
thread_local char error_text[1024];
}

cuvil_status fail(cuvil_status status, const char* format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(error_text, sizeof(error_text), format, args);
  va_end(args);
  return status;
}

cuvil_status explain(cuvil_status status, const char* format, ...) {
  char text[sizeof(error_text)];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  if (n < 0) return status;
  const size_t used = static_cast<size_t>(n) < sizeof(text) ? static_cast<size_t>(n) : sizeof(text) - 1;
  snprintf(text + used, sizeof(text) - used, ": %.900s", error_text);
  memcpy(error_text, text, sizeof(text));
  return status;
}

const char* last_error() { return error_text; }

cuvil_status out_of_memory(const char* what, unsigned long long bytes) {
  return fail(CUVIL_TARGET_ERROR, "out of memory: %s needs %llu bytes", what, bytes);
}

}  // namespace cuvil::runtime

extern "C" {

const char* cuvil_version(void) { return CUVIL_VERSION; }

const char* cuvil_last_error(void) { return cuvil::runtime::last_error(); }

const char* cuvil_status_name(cuvil_status status) {
  switch (status) {
    case CUVIL_OK:
      return "OK";
    case CUVIL_MODEL_ERROR:
      return "ModelError";
    case CUVIL_UNSUPPORTED_ERROR:
      return "UnsupportedError";
    case CUVIL_SHAPE_ERROR:
      return "ShapeError";
    case CUVIL_ARTIFACT_ERROR:
      return "ArtifactError";
    case CUVIL_TARGET_ERROR:
      return "TargetError";
    case CUVIL_INTERNAL_ERROR:
      return "InternalError";
  }
  return "unknown status";
}
}
