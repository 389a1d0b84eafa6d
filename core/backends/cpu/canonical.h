// A kernel as text that only depends on what it computes: names are numbered away. Equal text, equal code.
#pragma once

#include <string>

#include "core/kernel/ir.h"

namespace cuvil::backends::cpu {

/// Linear in the number of distinct expression nodes: shared ones are written once.
std::string canonical_text(const kernel::Kernel& kernel);

}  // namespace cuvil::backends::cpu
