// What the printer and the parser of Kernel IR agree on.
#pragma once

#include <string_view>

#include "core/kernel/ir.h"

namespace cuvil::kernel {

inline constexpr std::string_view kAccessNames[] = {"in", "out", "inout", "work"};
inline constexpr std::string_view kSpaceNames[] = {"global", "scratch", "reg", "shared", "constant"};
inline constexpr std::string_view kLoopNames[] = {"serial",       "vector",       "unroll",
                                                  "gpu_thread_x", "gpu_thread_y", "gpu_thread_z"};

inline bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Strength of an infix operator (all associate to the left), 0 for what is written as a function.
constexpr int precedence(Op op) {
  switch (op) {
    case Op::bit_or:
      return 1;
    case Op::bit_xor:
      return 2;
    case Op::bit_and:
      return 3;
    case Op::eq:
    case Op::ne:
      return 4;
    case Op::lt:
    case Op::le:
    case Op::gt:
    case Op::ge:
      return 5;
    case Op::shl:
    case Op::shr:
      return 6;
    case Op::add:
    case Op::sub:
      return 7;
    case Op::mul:
    case Op::div:
    case Op::floormod:
      return 8;
    default:
      return 0;
  }
}

}  // namespace cuvil::kernel
