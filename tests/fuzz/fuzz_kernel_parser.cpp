// The text form of Kernel IR: any bytes give a kernel or a ModelError; what parses round-trips, and the verifier says
// yes or no.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/kernel/parse.h"
#include "core/kernel/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cuvil::kernel;
  std::optional<Kernel> kernel;
  try {
    kernel = parse(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const cuvil::Error& error) {
    if (error.status() == CUVIL_INTERNAL_ERROR) std::abort();
    return 0;
  }
  const std::string text = print(*kernel);
  if (print(parse(text)) != text) std::abort();
  try {
    verify(*kernel);
  } catch (const cuvil::Error&) {  // NOLINT: a broken rule is an answer
  }
  return 0;
}
