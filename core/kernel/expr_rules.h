// The rules of one expression node, its operands being right: shared by the verifier and the parser.
#pragma once

#include <string>

#include "core/kernel/ir.h"

namespace cuvil::kernel {

/// Empty, or the rule that the node breaks.
std::string broken_rule(const ExprNode& node);
/// The same for one access to a buffer, of a load, a store or a prefetch: indices, lanes of the value, mask.
std::string broken_access_rule(const BufferInfo& buffer, std::span<const Expr> indices, Type value, const Expr& mask);

inline constexpr int kMaxLanes = 64;
inline constexpr size_t kMaxRank = 12;

}  // namespace cuvil::kernel
