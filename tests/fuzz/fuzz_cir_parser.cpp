// The text form of CIR: any bytes give a graph or a ModelError, and what parses round-trips.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/base/error.h"
#include "core/ir/graph.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto graph = cuvil::ir::parse(std::string_view(reinterpret_cast<const char*>(data), size));
    const std::string text = cuvil::ir::print(graph);
    if (cuvil::ir::print(cuvil::ir::parse(text)) != text) std::abort();
  } catch (const cuvil::Error& error) {
    if (error.status() != CUVIL_MODEL_ERROR) std::abort();
  }
  return 0;
}
