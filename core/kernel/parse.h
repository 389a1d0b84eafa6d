// The text form of Kernel IR; docs/kernel_ir.md describes it with examples.
#pragma once

#include <string>
#include <string_view>

#include "core/kernel/ir.h"

namespace cuvil::kernel {

/// Canonical text: print(parse(print(k))) == print(k). Names made unique, no locations: it is hashed for the cache.
std::string print(const Kernel& kernel);
std::string print(const Expr& expr);

/// Throws ModelError with line and column, what was expected and what was found. Any bytes are safe to pass; nesting is
/// bounded.
Kernel parse(std::string_view text);

}  // namespace cuvil::kernel
