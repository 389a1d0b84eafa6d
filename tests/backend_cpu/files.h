// Files of the tests, and commands.
#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/kernel/ir.h"
#include "core/kernel/parse.h"

namespace cuvil::backends::testing {

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw_internal("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_file(const std::string& path, const void* data, size_t bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  if (!out.flush()) throw_internal("cannot write " + path);
}

/// The kernel of tests/backend_cpu/text/NAME.kir.
inline kernel::Kernel kernel_of_text(const std::string& name) {
  return kernel::parse(read_file(std::string(CUVIL_SOURCE_DIR) + "/tests/backend_cpu/text/" + name + ".kir"));
}

}  // namespace cuvil::backends::testing
