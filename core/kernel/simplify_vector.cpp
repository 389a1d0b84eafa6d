// Ramps, broadcasts and memory operands. b, s, x are scalars, n the number of lanes.
#include "core/kernel/scalar.h"
#include "core/kernel/simplifier.h"

namespace cuvil::kernel {
namespace {

bool is_lane_wise(Op op) {
  return op >= Op::add && op != Op::dot && op != Op::bitcast && op != Op::lane && op != Op::shuffle;
}

/// A ramp, or a broadcast as a ramp of stride 0.
struct RampForm {
  Expr base, stride;
};
bool as_ramp(const Expr& e, const Expr& zero, RampForm* out) {
  if (e->op == Op::ramp) *out = {e->args[0], e->args[1]};
  if (e->op == Op::broadcast) *out = {e->args[0], zero};
  return e->op == Op::ramp || e->op == Op::broadcast;
}

}  // namespace

Expr ExprSimplifier::vector_rules(Op op, Type type, const Args& args) {
  if (op == Op::ramp) {
    // ramp(b, 0) = broadcast(b)
    if (args[1].is_const_int(0)) return raw(Op::broadcast, type, {args[0]});
    return {};
  }
  if (!type.is_vector() || !is_lane_wise(op)) return {};
  // op(broadcast(x), ...) = broadcast(op(x, ...))
  bool all = true;
  for (const Expr& a : args) all = all && (a->op == Op::broadcast || !a.type().is_vector());
  if (all) {
    Args scalars;
    for (const Expr& a : args) scalars.push_back(a->op == Op::broadcast ? a->args[0] : a);
    return raw(Op::broadcast, type, {apply(op, type.element(), std::move(scalars))});
  }
  return ramp_rules(op, type, args);
}

Expr ExprSimplifier::ramp_rules(Op op, Type type, const Args& args) {
  RampForm a, b;
  if (args.size() != 2 || args[0].type().dtype != DType::i64) return {};
  if (!as_ramp(args[0], index(0), &a) || !as_ramp(args[1], index(0), &b)) return {};
  const Linear base_a = facts.linear(a.base), base_b = facts.linear(b.base);
  const Linear stride_a = facts.linear(a.stride), stride_b = facts.linear(b.stride);
  const auto ramp = [&](const Linear& base, const Linear& stride) {
    return apply(Op::ramp, type, {facts.expression(base), facts.expression(stride)});
  };
  switch (op) {
    case Op::add:
      return ramp(facts.sum(base_a, base_b), facts.sum(stride_a, stride_b));
    case Op::sub:
      return ramp(facts.sum(base_a, base_b, -1), facts.sum(stride_a, stride_b, -1));
    case Op::mul:
      // ramp(b, s) * x = ramp(b*x, s*x)
      if (b.stride.is_const_int(0)) return ramp(facts.product(base_a, base_b), facts.product(stride_a, base_b));
      if (a.stride.is_const_int(0)) return ramp(facts.product(base_a, base_b), facts.product(base_a, stride_b));
      return {};
    case Op::floordiv:
    case Op::floormod: {
      // All lanes in one block: floordiv(ramp(b, s), d) = floordiv(b, d) if (b % d) + (n-1)*s < d
      if (b.base->op != Op::const_int || !b.stride.is_const_int(0) || b.base->int_value <= 0) return {};
      if (!stride_a.is_const() || stride_a.constant < 0 || !facts.bounds(a.base).exact()) return {};
      int64_t span = 0;
      if (__builtin_mul_overflow(stride_a.constant, type.lanes - 1, &span)) return {};
      const Expr low = apply(Op::floormod, kIndex, {a.base, b.base});
      Linear room = facts.sum(base_b, facts.linear(low), -1);
      room.constant -= span + 1;
      if (!facts.never_negative(room)) return {};
      if (op == Op::floordiv) return raw(Op::broadcast, type, {apply(Op::floordiv, kIndex, {a.base, b.base})});
      return ramp(facts.linear(low), stride_a);
    }
    case Op::lt:
    case Op::le:
    case Op::gt:
    case Op::ge:
    case Op::eq:
    case Op::ne:
    case Op::min:
    case Op::max: {
      // Decided in the first and in the last lane in the same way: decided in all.
      if (!facts.bounds(a.base).exact() || !facts.bounds(b.base).exact()) return {};
      if (!facts.bounds(a.stride).exact() || !facts.bounds(b.stride).exact()) return {};
      const Linear first = facts.sum(base_b, base_a, -1);
      const Linear last = facts.sum(first, facts.sum(stride_b, stride_a, -1), args[0].type().lanes - 1);
      const bool extremum = op == Op::min || op == Op::max;
      if (op == Op::eq || op == Op::ne) return {};
      const Op test = extremum ? Op::le : op;
      const Expr x = compare(test, first), y = compare(test, last);
      if (!x || x.get() != y.get()) return {};
      if (extremum) return (x->int_value != 0) == (op == Op::min) ? args[0] : args[1];
      return raw(Op::broadcast, type, {x});
    }
    default:
      return {};
  }
}

Expr ExprSimplifier::memory(const Expr& like, Args args) {
  ExprNode node = *like;
  if (node.has_mask) {
    // A mask of all lanes is none; a load of no lanes is 0.
    if (const auto mask = as_constant(args.back())) {
      if (!mask->i) return simplify(constant(node.type, 0));
      args.pop_back();
      node.has_mask = false;
    }
  }
  const size_t rank = args.size() - (node.has_mask ? 1 : 0);
  bool gather = false;
  for (size_t i = 0; i < rank; ++i) gather = gather || args[i].type().is_vector();
  if (gather && !node.buffer->type.is_vector()) {
    bool outer = true;
    for (size_t i = 0; i + 1 < rank; ++i) outer = outer && args[i]->op == Op::broadcast;
    const Expr& inner = args[rank - 1];
    const auto& strides = node.buffer->strides;
    const bool dense = strides.empty() || strides.back().is_const_int(1);
    if (outer && dense && inner->op == Op::ramp && inner->args[1].is_const_int(1)) {
      // load(x..., ramp(b, 1)) is contiguous from b on
      for (size_t i = 0; i < rank; ++i) args[i] = args[i]->args[0];
    } else if (outer && inner->op == Op::broadcast && !node.has_mask) {
      // load(broadcast(x)) = broadcast(load(x))
      for (Expr& a : args) a = a->args[0];
      const Type type = node.type;
      node.type = type.element();
      node.args = std::move(args);
      return raw(Op::broadcast, type, {intern_(Expr(std::make_shared<const ExprNode>(std::move(node))))});
    }
  }
  node.args = std::move(args);
  return intern_(Expr(std::make_shared<const ExprNode>(std::move(node))));
}

}  // namespace cuvil::kernel
