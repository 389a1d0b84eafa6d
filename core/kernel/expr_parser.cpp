#include "core/kernel/expr_parser.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "core/kernel/expr_rules.h"
#include "core/kernel/scalar.h"
#include "core/kernel/syntax.h"

namespace cuvil::kernel {
namespace {

constexpr int kMostNesting = 200;
constexpr int kMostDepth = 2000;

std::optional<Op> infix(const Token& t) {
  if (t.kind != TokenKind::mark) return std::nullopt;
  for (int i = 0; i <= static_cast<int>(Op::dot); ++i)
    if (precedence(static_cast<Op>(i)) > 0 && info(static_cast<Op>(i)).text == t.text) return static_cast<Op>(i);
  return std::nullopt;
}

std::optional<Op> function(std::string_view word) {
  if (word == "not") return Op::bit_not;
  for (int i = static_cast<int>(Op::ramp); i <= static_cast<int>(Op::dot); ++i)
    if (precedence(static_cast<Op>(i)) == 0 && info(static_cast<Op>(i)).text == word) return static_cast<Op>(i);
  return std::nullopt;
}

std::optional<Type> type_from(std::string_view word) {
  if (const auto scalar = dtype_from_name(word)) return Type{*scalar, 1};
  const size_t x = word.rfind('x');
  if (x == std::string_view::npos) return std::nullopt;
  const auto dtype = dtype_from_name(word.substr(0, x));
  int lanes = 0;
  const auto end = std::from_chars(word.data() + x + 1, word.data() + word.size(), lanes);
  if (!dtype || end.ec != std::errc() || end.ptr != word.data() + word.size() || lanes < 2 || lanes > kMaxLanes)
    return std::nullopt;
  return Type{*dtype, static_cast<uint16_t>(lanes)};
}

}  // namespace

void Names::release(size_t mark) {
  for (; order_.size() > mark; order_.pop_back()) entries_.erase(order_.back());
}
void Names::add(const Token& name, Entry entry) {
  if (!entries_.emplace(std::string(name.text), std::move(entry)).second)
    Lexer::fail(name, "%" + std::string(name.text) + " is visible here already; choose another name");
  order_.emplace_back(name.text);
}
void Names::add(const Token& name, Var var) { add(name, Entry{std::move(var), nullptr}); }
void Names::add(const Token& name, Buffer buffer) { add(name, Entry{nullptr, std::move(buffer)}); }
const Names::Entry& Names::find(const Token& name) const {
  const auto found = entries_.find(name.text);
  if (found == entries_.end()) Lexer::fail(name, "%" + std::string(name.text) + " is not visible here");
  return found->second;
}
Var Names::var(const Token& name) const { return find(name).var; }
Buffer Names::buffer(const Token& name) const {
  const Entry& e = find(name);
  if (!e.buffer) Lexer::fail(name, "%" + std::string(name.text) + " is a value, not a buffer");
  return e.buffer;
}
bool Names::is_buffer(const Token& name) const { return find(name).buffer != nullptr; }

Nesting::Nesting(Lexer& lexer, int& depth) : depth_(depth) {
  if (depth >= kMostNesting)
    Lexer::fail(lexer.peek(), "nested more than " + std::to_string(kMostNesting) + " levels deep");
  ++depth;
}

Expr ExprParser::top() {
  begin_statement();
  return expr();
}

Expr ExprParser::top_index() {
  const Token at = lexer_.peek();
  Expr e = top();
  if (!(e.type() == kIndex)) Lexer::fail(at, "expected an i64, found a value of type " + e.type().str());
  return e;
}

Type ExprParser::type() {
  const Token at = lexer_.peek();
  const std::optional<Type> t = at.kind == TokenKind::word ? type_from(at.text) : std::nullopt;
  if (!t) lexer_.fail_expected("a type (f32, i64, f32x16, ...; 2 to 64 lanes)");
  lexer_.next();
  return *t;
}

int64_t ExprParser::integer(int64_t low, int64_t high, const char* what) {
  const Token at = lexer_.peek();
  const bool negative = lexer_.accept_mark("-");
  const Token digits = lexer_.expect(TokenKind::integer, what);
  int64_t value = 0;
  const auto end = std::from_chars(digits.text.data(), digits.text.data() + digits.text.size(), value);
  if (negative) value = -value;
  if (end.ec != std::errc() || value < low || value > high)
    Lexer::fail(at, std::string(what) + " lies between " + std::to_string(low) + " and " + std::to_string(high));
  return value;
}

ExprParser::Operand ExprParser::make_node(const Token& at, ExprNode node, int depth) {
  if (const std::string rule = broken_rule(node); !rule.empty()) Lexer::fail(at, rule);
  if (depth >= kMostDepth) Lexer::fail(at, "an expression more than " + std::to_string(kMostDepth) + " levels deep");
  return {Expr(std::make_shared<const ExprNode>(std::move(node))), depth + 1};
}

Expr ExprParser::fit(const Token& at, Expr e, int lanes) {
  if (lanes <= 1 || e.type().is_vector()) return e;
  const Type type = e.type().with_lanes(lanes);
  return make_node(at, {Op::broadcast, type, {std::move(e)}}, 1).e;
}

ExprParser::Operand ExprParser::lane_wise(const Token& at, Op op, std::vector<Operand> args) {
  const bool compares = op >= Op::eq && op <= Op::ge;
  int lanes = 1, depth = 0;
  for (const Operand& a : args) {
    lanes = std::max<int>(lanes, a.e.type().lanes);
    depth = std::max(depth, a.depth + 1);  // a broadcast may come between
  }
  ExprNode n{op, args.back().e.type().with_lanes(lanes), {}};
  if (compares) n.type.dtype = DType::boolean;
  for (size_t i = 0; i < args.size(); ++i)
    n.args.push_back(op == Op::select && i == 0 ? args[i].e : fit(at, args[i].e, lanes));
  return make_node(at, std::move(n), depth);
}

ExprParser::Operand ExprParser::binary(int strength) {
  const Nesting nesting(lexer_, nesting_);
  Operand left = primary();
  for (;;) {
    const std::optional<Op> op = infix(lexer_.peek());
    if (!op || precedence(*op) < strength) return left;
    const Token at = lexer_.next();
    left = lane_wise(at, *op, {left, binary(precedence(*op) + 1)});
  }
}

ExprParser::Operand ExprParser::labelled(const Token& open) {
  if (lexer_.peek().kind != TokenKind::label) {
    Operand inner = binary(1);
    lexer_.expect_mark(")");
    return inner;
  }
  const Token label = lexer_.next();
  if (lexer_.accept_mark("=")) {
    Operand inner = binary(1);
    lexer_.expect_mark(")");
    if (!labels_.emplace(std::string(label.text), inner).second)
      Lexer::fail(label, "#" + std::string(label.text) + " is named already in this statement");
    return inner;
  }
  Lexer::fail(open, "write #" + std::string(label.text) + " without parentheses");
}

ExprParser::Operand ExprParser::primary() {
  const Token at = lexer_.peek();
  switch (at.kind) {
    case TokenKind::integer:
      return literal(at, DType::i64);
    case TokenKind::floating:
      return literal(at, DType::f32);
    case TokenKind::name:
      lexer_.next();
      if (names_.is_buffer(at)) return load(at);
      return {Expr(names_.var(at)), 1};
    case TokenKind::label: {
      lexer_.next();
      const auto found = labels_.find(at.text);
      if (found == labels_.end())
        Lexer::fail(at, "#" + std::string(at.text) + " is not named before in this statement");
      return found->second;
    }
    case TokenKind::word:
      return word(at);
    case TokenKind::mark:
      if (lexer_.accept_mark("(")) return labelled(at);
      if (at.text == "-") {
        lexer_.next();
        const Token& number = lexer_.peek();
        if (number.kind == TokenKind::integer) return literal(at, DType::i64);
        if (number.kind == TokenKind::floating || number.is(TokenKind::word, "inf")) return literal(at, DType::f32);
        const Nesting nesting(lexer_, nesting_);
        return lane_wise(at, Op::neg, {primary()});
      }
      break;
    default:
      break;
  }
  lexer_.fail_expected("an expression");
}

/// The number itself; `at` is the minus sign if there was one.
ExprParser::Operand ExprParser::literal(const Token& at, DType dtype) {
  const bool negative = at.is(TokenKind::mark, "-");
  const Token t = lexer_.next();
  const char *first = t.text.data(), *last = first + t.text.size();
  auto out_of_range = [&] {
    Lexer::fail(t, std::string(name_of(dtype)) + " cannot hold " + std::string(t.text.substr(0, 40)));
  };
  Scalar s;
  if (is_float(dtype)) {
    if (t.is(TokenKind::word, "inf")) {
      s.f = std::numeric_limits<double>::infinity();
    } else if (t.is(TokenKind::word, "nan")) {
      s.f = std::numeric_limits<double>::quiet_NaN();
    } else if (t.kind != TokenKind::integer && t.kind != TokenKind::floating) {
      Lexer::fail(t, "expected a number, inf or nan");
    } else if (dtype == DType::f64) {
      if (std::from_chars(first, last, s.f).ec != std::errc()) out_of_range();
    } else {
      float f = 0;
      if (std::from_chars(first, last, f).ec != std::errc()) out_of_range();
      s.f = f;
    }
    if (negative) s.f = -s.f;
  } else if (dtype == DType::boolean) {
    if (negative || !(t.is(TokenKind::word, "true") || t.is(TokenKind::word, "false")))
      Lexer::fail(t, "expected true or false");
    s.i = t.text == "true";
  } else {
    uint64_t magnitude = 0;
    if (t.kind != TokenKind::integer) Lexer::fail(t, "expected an integer");
    if (std::from_chars(first, last, magnitude).ec != std::errc()) out_of_range();
    constexpr uint64_t kSmallest = uint64_t{1} << 63;
    if (dtype == DType::u64 ? negative && magnitude > 0 : magnitude > kSmallest - !negative) out_of_range();
    s.i = static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
  }
  const Expr e = make_constant({dtype, 1}, s);
  if (!is_float(dtype) && e->int_value != s.i) out_of_range();
  return {e, 1};
}

ExprParser::Operand ExprParser::word(const Token& at) {
  if (at.text == "true" || at.text == "false") return literal(at, DType::boolean);
  if (at.text == "inf" || at.text == "nan") return literal(at, DType::f32);
  if (const auto dtype = dtype_from_name(at.text)) {
    lexer_.next();
    lexer_.expect_mark("(");
    const Token first = lexer_.peek();
    lexer_.accept_mark("-");
    Operand value = literal(first, *dtype);
    lexer_.expect_mark(")");
    return value;
  }
  if (at.text == "ceildiv" || at.text == "lane_mask") {
    lexer_.next();
    lexer_.expect_mark("(");
    const Operand a = binary(1);
    lexer_.expect_mark(",");
    const Operand b = binary(1);
    if (!(a.e.type() == kIndex) || !(b.e.type() == kIndex))
      Lexer::fail(at, std::string(at.text) + " takes i64 scalars");
    Expr e;
    if (at.text == "ceildiv") {
      e = ceildiv(a.e, b.e);
    } else {
      lexer_.expect_mark(",");
      e = lane_mask(a.e, b.e, static_cast<int>(integer(1, kMaxLanes, "a number of lanes")));
    }
    lexer_.expect_mark(")");
    const int depth = std::max(a.depth, b.depth) + 4;
    if (depth > kMostDepth) Lexer::fail(at, "an expression too deep");
    return {e, depth};
  }
  const std::optional<Op> op = function(at.text);
  if (!op) lexer_.fail_expected("an expression");
  lexer_.next();
  return call(*op, at);
}

ExprParser::Operand ExprParser::call(Op op, const Token& at) {
  lexer_.expect_mark("(");
  ExprNode n{op, {}, {}};
  if (op == Op::cast || op == Op::bitcast) {
    n.type = type();
    lexer_.expect_mark(",");
  }
  std::vector<Operand> args;
  int depth = 0;
  auto operand = [&] {
    args.push_back(binary(1));
    depth = std::max(depth, args.back().depth);
  };
  operand();
  if (op == Op::shuffle) {
    lexer_.expect_mark(",");
    if (lexer_.peek().text != "[" || lexer_.peek().kind != TokenKind::mark) {
      operand();
      lexer_.expect_mark(",");
    }
    lexer_.expect_mark("[");
    do {
      n.lanes.push_back(static_cast<int>(integer(0, 2 * kMaxLanes, "a lane")));
    } while (n.lanes.size() < static_cast<size_t>(kMaxLanes) && lexer_.accept_mark(","));
    lexer_.expect_mark("]");
  } else if (op == Op::broadcast || op == Op::lane) {
    lexer_.expect_mark(",");
    n.int_value = integer(0, kMaxLanes, op == Op::lane ? "a lane" : "a number of lanes");
  } else {
    for (int i = 1; i < info(op).arity; ++i) {
      lexer_.expect_mark(",");
      operand();
    }
    if (op == Op::ramp) {
      lexer_.expect_mark(",");
      n.int_value = integer(0, kMaxLanes, "a number of lanes");
    }
  }
  lexer_.expect_mark(")");
  if (op >= Op::add && op <= Op::select) return lane_wise(at, op, std::move(args));
  for (Operand& a : args) n.args.push_back(std::move(a.e));
  const Type first = n.args[0].type();
  switch (op) {
    case Op::ramp:
    case Op::broadcast:
      n.type = first.with_lanes(static_cast<int>(n.int_value));
      n.int_value = 0;
      break;
    case Op::shuffle:
      n.type = first.with_lanes(static_cast<int>(n.lanes.size()));
      break;
    case Op::cast:
      if (n.type.is_vector()) Lexer::fail(at, "a cast names the element's type; it keeps the number of lanes");
      n.type = n.type.with_lanes(first.lanes);
      break;
    case Op::bitcast:
      break;
    case Op::dot:
      n.type = first;
      break;
    default:  // lane, reductions
      n.type = first.element();
      break;
  }
  return make_node(at, std::move(n), depth);
}

Place ExprParser::place(const Token& name) {
  Place p{names_.buffer(name), {}, 0, {}};
  depth_ = 0;
  int depth = 0, gathered = 1;
  lexer_.expect_mark("[");
  const Token first = lexer_.peek();
  while (!lexer_.peek().is(TokenKind::mark, "]") && !lexer_.peek().is(TokenKind::mark, "?")) {
    if (p.indices.size() >= kMaxRank) Lexer::fail(first, "more than " + std::to_string(kMaxRank) + " indices");
    const Operand o = binary(1);
    depth = std::max(depth, o.depth + 1);
    gathered = std::max<int>(gathered, o.e.type().lanes);
    p.indices.push_back(o.e);
    if (lexer_.accept_mark(":")) {
      p.lanes = static_cast<int>(integer(2, kMaxLanes, "a number of lanes"));
      break;
    }
    if (!lexer_.accept_mark(",")) break;
  }
  for (Expr& i : p.indices) i = fit(first, i, gathered);
  if (gathered > 1) {
    if (p.lanes) Lexer::fail(first, "a vector of indices and a number of lanes");
    p.lanes = gathered;
  }
  if (lexer_.accept_mark("?")) {
    const Operand o = binary(1);
    depth = std::max(depth, o.depth + 1);
    p.mask = o.e;
  }
  lexer_.expect_mark("]");
  depth_ = depth;
  return p;
}

ExprParser::Operand ExprParser::load(const Token& name) {
  Place p = place(name);
  const int depth = depth_;
  const Type element = p.buffer->type;
  ExprNode n{Op::load, p.lanes ? element.with_lanes(p.lanes) : element, std::move(p.indices)};
  n.buffer = p.buffer;
  if (p.mask) {
    n.has_mask = true;
    n.args.push_back(fit(name, p.mask, n.type.lanes));
  }
  return make_node(name, std::move(n), depth);
}

}  // namespace cuvil::kernel
