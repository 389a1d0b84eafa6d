// Size programs: numbers that depend on the inputs' shapes, as postfix code over int64 (core/abi/abi.h).
#pragma once

#include <cstdint>

#include "core/abi/cvl_generated.h"

namespace cuvil::runtime {

inline constexpr uint32_t kMaxSizeStack = 64;

enum class SizeError : uint8_t { none, overflow, divisor };

/// True if the code leaves exactly one value, never needs more than kMaxSizeStack and uses symbols below
/// `symbol_count` only. Sets *highest to the highest symbol it uses, -1 for none.
bool check_size_program(const cvl::SizeOp* ops, uint32_t count, uint32_t symbol_count, int64_t* highest);

/// Runs a checked program.
SizeError run_size_program(const cvl::SizeOp* ops, uint32_t count, const int64_t* symbols, int64_t* value);

}  // namespace cuvil::runtime
