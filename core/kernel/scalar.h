// What every operator does to one value: shared by the constructors' folding, the simplifier and the interpreter.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/kernel/ir.h"

namespace cuvil::kernel {

/// out[i] = op(a[i], b[i], c[i]) for `lanes` elements in memory form (bool: one byte, f16: two). Unused operands null.
using LaneFn = void (*)(void* out, const void* a, const void* b, const void* c, int lanes);

/// The function of an arithmetic, comparison, bit, transcendental operator or select for operands of `dtype` (select:
/// of its values; the condition `a` is bool). Null if the operator is not defined for the type; verify() asks here.
LaneFn lane_function(Op op, DType dtype);
/// out[i] = cast(a[i]); defined for all pairs.
LaneFn cast_function(DType to, DType from);

/// A value of any element type: integers and bool in `i` (u64 by its bits), floats in `f`, exactly.
struct Scalar {
  int64_t i = 0;
  double f = 0;
};
void store_scalar(void* memory, DType dtype, Scalar value);  ///< rounds and wraps
Scalar load_scalar(const void* memory, DType dtype);

/// The value of a const_int or const_float, or of a broadcast of one; nullopt for all else.
std::optional<Scalar> as_constant(const Expr& e);
/// A constant expression of `type`, broadcast if that is a vector.
Expr make_constant(Type type, Scalar value);

/// The constant that `op` over constant operands gives, exactly as the interpreter computes it; a null Expr if an
/// operand is not constant or the operator is not of lane_function()'s kinds. Operands as in a finished node.
Expr fold(Op op, Type result, std::span<const Expr> args);
Expr fold_cast(Type to, const Expr& value);

/// Reductions add, or pick, in this order: while the number of lanes is even, the upper half onto the lower half, then
/// from left to right. `lanes` is overwritten.
void reduce_lanes(Op op, DType dtype, void* lanes, int count);

}  // namespace cuvil::kernel
