#include "tests/kernel/kernel_texts.h"

#include <fstream>
#include <sstream>

#include "core/base/error.h"
#include "core/kernel/parse.h"
#include "core/kernel/verify.h"

namespace cuvil::kernel::testing {

std::string kernel_text(const std::string& name) {
  std::ifstream file(std::string(CUVIL_SOURCE_DIR "/tests/kernel/text/") + name + ".kir");
  CUVIL_CHECK(file.good(), "no kernel text " + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Kernel kernel_from_text(const std::string& name) {
  Kernel k = parse(kernel_text(name));
  verify(k);
  return k;
}

}  // namespace cuvil::kernel::testing
