// The driver of the rules, and those that hold for all types.
//
// Direction: every rule gives an expression with fewer nodes, or brings index sums to their one linear form; no rule
// undoes another, operands are simplified first and each node once, so simplification ends. x and y are any operands, c
// a constant. Float rules hold for every input, NaN, infinities and -0 included.
#include <cmath>

#include "core/kernel/math.h"
#include "core/kernel/scalar.h"
#include "core/kernel/simplifier.h"

namespace cuvil::kernel {
namespace {

bool is_value(const Expr& e, double value) {
  const auto c = as_constant(e);
  if (!c) return false;
  return is_float(e.type().dtype) ? c->f == value : static_cast<double>(c->i) == value;
}

bool is_positive_zero(const Expr& e) { return is_value(e, 0) && !std::signbit(as_constant(e)->f); }
bool is_negative_zero(const Expr& e) { return is_value(e, 0) && std::signbit(as_constant(e)->f); }

bool is_comparison(Op op) { return op >= Op::eq && op <= Op::ge; }

}  // namespace

Expr ExprSimplifier::raw(Op op, Type type, Args args) {
  return intern_(Expr(std::make_shared<const ExprNode>(ExprNode{op, type, std::move(args)})));
}

void ExprSimplifier::push(const Expr& condition, bool value) {
  facts.push(condition, value);
  done_.emplace_back();
}

void ExprSimplifier::pop() {
  facts.pop();
  done_.pop_back();
}

Expr ExprSimplifier::simplify(const Expr& e) {
  if (!e) return e;
  auto& done = done_.back();
  if (const auto it = done.find(e.get()); it != done.end()) return it->second.second;
  Expr r;
  if (e->op == Op::var) {
    const auto it = replaced_.find(e->variable.get());
    r = it == replaced_.end() ? intern_(e) : it->second;
  } else if (e->args.empty()) {
    r = intern_(e);
  } else {
    Args args;
    args.reserve(e->args.size());
    for (const Expr& a : e->args) args.push_back(simplify(a));
    r = apply(e, std::move(args));
  }
  done.emplace(e.get(), std::pair(e, r));
  return r;
}

Expr ExprSimplifier::apply(const Expr& like, Args args) {
  switch (like->op) {
    case Op::load:
      return memory(like, std::move(args));
    case Op::lane:
    case Op::shuffle: {
      if (like->op == Op::lane) {
        // lane(broadcast(x), i) = x;  lane(ramp(b, s), i) = b + i*s
        if (args[0]->op == Op::broadcast) return args[0]->args[0];
        if (args[0]->op == Op::ramp && args[0].type().dtype == DType::i64)
          return facts.expression(
              facts.sum(facts.linear(args[0]->args[0]), facts.linear(args[0]->args[1]), like->int_value));
      }
      ExprNode node = *like;
      node.args = std::move(args);
      return intern_(Expr(std::make_shared<const ExprNode>(std::move(node))));
    }
    default:
      return apply(like->op, like->type, std::move(args));
  }
}

Expr ExprSimplifier::apply(Op op, Type type, Args args) {
  if (Expr r = constants(op, type, args)) return r;
  if (Expr r = vector_rules(op, type, args)) return r;
  if (args[0].type() == kIndex && (type == kIndex || type == kBool)) {
    if (Expr r = index_rules(op, args)) return r;
  }
  if (Expr r = identities(op, type, args)) return r;
  if (Expr r = booleans(op, type, args)) return r;
  return raw(op, type, std::move(args));
}

Expr ExprSimplifier::constants(Op op, Type type, const Args& args) {
  // A transcendental's bits are those of its expansion, which folds by itself; the exact value could differ.
  if (is_transcendental(op)) return {};
  for (const Expr& a : args)
    if (!as_constant(a)) return {};
  Expr r;
  if (op == Op::cast) {
    r = fold_cast(type, args[0]);
  } else if (op != Op::ramp && op != Op::broadcast && op != Op::bitcast && op != Op::dot && op != Op::reduce_add &&
             op != Op::reduce_max && op != Op::reduce_min) {
    r = fold(op, type, args);
  }
  if (!r) return {};
  if (!type.is_vector()) return intern_(r);
  return raw(Op::broadcast, type, {intern_(r->args[0])});
}

Expr ExprSimplifier::identities(Op op, Type type, const Args& a) {
  const bool floating = is_float(type.dtype);
  switch (op) {
    case Op::add:
      // x + 0 = x for integers;  x + -0.0 = x
      if (floating ? is_negative_zero(a[1]) : is_value(a[1], 0)) return a[0];
      if (floating ? is_negative_zero(a[0]) : is_value(a[0], 0)) return a[1];
      break;
    case Op::sub:
      // x - 0 = x;  x - x = 0 for integers
      if (floating ? is_positive_zero(a[1]) : is_value(a[1], 0)) return a[0];
      if (!floating && a[0].get() == a[1].get()) return simplify(constant(type, 0));
      break;
    case Op::mul:
      // x * 1 = x;  x * 0 = 0 for integers
      if (is_value(a[1], 1)) return a[0];
      if (is_value(a[0], 1)) return a[1];
      if (!floating && is_value(a[1], 0)) return a[1];
      if (!floating && is_value(a[0], 0)) return a[0];
      break;
    case Op::div:
      // x / 1 = x
      if (is_value(a[1], 1)) return a[0];
      break;
    case Op::floordiv:
      if (!floating && is_value(a[1], 1)) return a[0];
      break;
    case Op::floormod:
      if (!floating && is_value(a[1], 1)) return simplify(constant(type, 0));
      break;
    case Op::fma:
      // fma(x, 1, y) = x + y, both round once
      if (is_value(a[1], 1)) return apply(Op::add, type, {a[0], a[2]});
      if (is_value(a[0], 1)) return apply(Op::add, type, {a[1], a[2]});
      break;
    case Op::min:
    case Op::max:
      // min(x, x) = x
      if (a[0].get() == a[1].get()) return a[0];
      break;
    case Op::neg:
    case Op::bit_not:
      // -(-x) = x;  ~~x = x
      if (a[0]->op == op) return a[0]->args[0];
      break;
    case Op::abs:
      // abs(abs x) = abs x;  abs(-x) = abs x for floats
      if (a[0]->op == Op::abs) return a[0];
      if (floating && a[0]->op == Op::neg) return apply(Op::abs, type, {a[0]->args[0]});
      break;
    case Op::floor:
    case Op::ceil:
    case Op::trunc:
    case Op::round:
      // floor(round x) = round x, and so on
      if (a[0]->op == Op::floor || a[0]->op == Op::ceil || a[0]->op == Op::trunc || a[0]->op == Op::round) return a[0];
      break;
    case Op::shl:
    case Op::shr:
      if (is_value(a[1], 0)) return a[0];
      break;
    case Op::bit_and:
      // x & 0 = 0;  x & x = x
      if (is_value(a[0], 0) || a[0].get() == a[1].get()) return a[0];
      if (is_value(a[1], 0)) return a[1];
      break;
    case Op::bit_or:
      // x | 0 = x;  x | x = x
      if (is_value(a[1], 0) || a[0].get() == a[1].get()) return a[0];
      if (is_value(a[0], 0)) return a[1];
      break;
    case Op::bit_xor:
      if (is_value(a[1], 0)) return a[0];
      if (is_value(a[0], 0)) return a[1];
      break;
    case Op::cast:
    case Op::bitcast:
      if (type == a[0].type()) return a[0];
      // bitcast(bitcast x) = bitcast x
      if (op == Op::bitcast && a[0]->op == Op::bitcast) return apply(Op::bitcast, type, {a[0]->args[0]});
      break;
    case Op::select: {
      // select(c, x, y) for constant c;  select(c, x, x) = x;  select(!c, x, y) = select(c, y, x)
      if (const auto c = as_constant(a[0])) return c->i ? a[1] : a[2];
      if (a[1].get() == a[2].get()) return a[1];
      if (a[0]->op == Op::bit_not) return apply(Op::select, type, {a[0]->args[0], a[2], a[1]});
      break;
    }
    case Op::reduce_min:
    case Op::reduce_max:
      // the least of equal lanes is any of them
      if (a[0]->op == Op::broadcast) return a[0]->args[0];
      break;
    default:
      break;
  }
  return {};
}

Expr ExprSimplifier::booleans(Op op, Type type, const Args& a) {
  if (type.dtype != DType::boolean) return {};
  const auto is_true = [](const Expr& e) { return is_value(e, 1); };
  switch (op) {
    case Op::bit_and:
      // x & true = x
      if (is_true(a[0])) return a[1];
      if (is_true(a[1])) return a[0];
      break;
    case Op::bit_or:
      // x | true = true
      if (is_true(a[0])) return a[0];
      if (is_true(a[1])) return a[1];
      break;
    case Op::bit_not: {
      // !(x < y) = x >= y for integers;  !(x == y) = x != y for all types
      static constexpr Op kInverse[] = {Op::ne, Op::eq, Op::ge, Op::gt, Op::le, Op::lt};
      const Op inner = a[0]->op;
      if (!is_comparison(inner)) break;
      if (is_float(a[0]->args[0].type().dtype) && inner != Op::eq && inner != Op::ne) break;
      return apply(kInverse[static_cast<int>(inner) - static_cast<int>(Op::eq)], type, a[0]->args);
    }
    default:
      break;
  }
  return {};
}

}  // namespace cuvil::kernel
