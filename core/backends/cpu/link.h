// Objects to one shared object, by lld inside this process.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/target_info.h"

namespace cuvil::backends::cpu {

/// An exported symbol and the symbol of an object that it is.
using Export = std::pair<std::string, std::string>;

/// A position-independent shared object that exports exactly `exports` and imports nothing; the same bytes for the
/// same objects. Throws InternalError with lld's words, e.g. for an undefined symbol. One link at a time (lld is not
/// thread-safe).
std::vector<uint8_t> link_shared(std::span<const std::span<const uint8_t>> objects, std::span<const Export> exports,
                                 Arch arch);

}  // namespace cuvil::backends::cpu
