// The error text of this thread. The runtime's functions return a cuvil_status; fail() makes one with a message.
#pragma once

#include "core/abi/abi.h"

namespace cuvil::runtime {

/// Stores the printf-like message as this thread's last error and returns `status`.
[[gnu::format(printf, 2, 3)]] cuvil_status fail(cuvil_status status, const char* format, ...);
/// Puts "PREFIX: " before the last error's text.
[[gnu::format(printf, 2, 3)]] cuvil_status explain(cuvil_status status, const char* format, ...);
const char* last_error();
cuvil_status out_of_memory(const char* what, unsigned long long bytes);

}  // namespace cuvil::runtime
