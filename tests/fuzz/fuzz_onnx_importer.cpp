// The ONNX importer: any bytes give a graph that obeys all rules, or a typed error that is not ours.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "core/base/error.h"
#include "core/frontends/onnx/import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto bytes = std::make_shared<std::string>(reinterpret_cast<const char*>(data), size);
  try {
    cuvil::frontends::import_onnx(*bytes, bytes, "fuzz.onnx");
  } catch (const cuvil::Error& error) {
    if (error.status() == CUVIL_INTERNAL_ERROR) std::abort();
  }
  return 0;
}
