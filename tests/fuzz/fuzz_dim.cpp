// The text of a symbolic size: any bytes give a size or nothing, and what parses round-trips.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/base/dim.h"
#include "core/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto dim = cuvil::Dim::parse(std::string_view(reinterpret_cast<const char*>(data), size));
    if (!dim) return 0;
    const auto again = cuvil::Dim::parse(dim->str());
    if (!again || again->str() != dim->str()) std::abort();
  } catch (const cuvil::Error& error) {
    if (error.status() == CUVIL_INTERNAL_ERROR) std::abort();
  }
  return 0;
}
