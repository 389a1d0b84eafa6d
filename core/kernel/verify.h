// The rules of well-formed Kernel IR, in words and in code.
#pragma once

#include "core/kernel/ir.h"

namespace cuvil::kernel {

/// Throws an InternalError naming kernel, statement and rule. The rules are listed in verify.cpp.
void verify(const Kernel& kernel);

}  // namespace cuvil::kernel
