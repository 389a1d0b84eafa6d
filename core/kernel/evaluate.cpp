// The value of an expression over known variables.
#include <vector>

#include "core/base/error.h"
#include "core/kernel/interpret.h"
#include "core/kernel/scalar.h"

namespace cuvil::kernel {
namespace {

/// The expression with its variables replaced: a constant, or null if one is missing.
Expr value_of(const Expr& e, std::span<const std::pair<Var, int64_t>> values) {
  if (e->op == Op::const_int || e->op == Op::const_float) return e;
  if (e->op == Op::var) {
    for (const auto& [variable, value] : values)
      if (variable == e->variable) return const_int(variable->type, value);
    return {};
  }
  std::vector<Expr> args;
  for (const Expr& a : e->args) {
    args.push_back(value_of(a, values));
    if (!args.back()) return {};
  }
  if (e->op == Op::cast) return fold_cast(e->type, args[0]);
  return fold(e->op, e->type, args);
}

}  // namespace

std::optional<int64_t> evaluate(const Expr& expr, std::span<const std::pair<Var, int64_t>> values) {
  CUVIL_CHECK(expr && !expr.type().is_vector() && !is_float(expr.type().dtype), "evaluate() gives an integer");
  const Expr value = value_of(expr, values);
  if (!value) return std::nullopt;
  return value->int_value;
}

}  // namespace cuvil::kernel
