// Kernels and statements of the text form; docs/kernel_ir.md has the grammar.
#include "core/kernel/parse.h"

#include <algorithm>
#include <limits>

#include "core/kernel/expr_parser.h"
#include "core/kernel/expr_rules.h"
#include "core/kernel/syntax.h"

namespace cuvil::kernel {
namespace {

/// Position of a word in a list of names, or -1.
template <size_t N>
int find_word(const std::string_view (&names)[N], const Token& t) {
  if (t.kind != TokenKind::word) return -1;
  for (size_t i = 0; i < N; ++i)
    if (names[i] == t.text) return static_cast<int>(i);
  return -1;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text), exprs_(lexer_, names_, nesting_) {}

  Kernel kernel() {
    Kernel k;
    lexer_.expect_word("kernel");
    k.name = lexer_.expect(TokenKind::symbol, "@ and the kernel's name").text;
    if (lexer_.accept_mark("<")) {
      do {
        const Token name = lexer_.expect(TokenKind::name, "% and the name of a dimension");
        k.dims.push_back(make_var(std::string(name.text)));
        names_.add(name, k.dims.back());
      } while (lexer_.accept_mark(","));
      lexer_.expect_mark(">");
    }
    lexer_.expect_mark("(");
    if (!lexer_.accept_mark(")")) {
      do k.params.push_back(parameter());
      while (lexer_.accept_mark(","));
      lexer_.expect_mark(")");
    }
    lexer_.expect_mark("{");
    while (!lexer_.accept_mark("}")) k.phases.push_back(phase());
    if (lexer_.peek().kind != TokenKind::end) lexer_.fail_expected("the end of the text");
    return k;
  }

 private:
  /// %name: f32[a, b]
  BufferInfo declaration(Token& name) {
    name = lexer_.expect(TokenKind::name, "% and the name of a buffer");
    BufferInfo b;
    b.name = name.text;
    lexer_.expect_mark(":");
    b.type = exprs_.type();
    lexer_.expect_mark("[");
    b.shape = sizes();
    return b;
  }
  /// Up to the closing bracket.
  std::vector<Expr> sizes() {
    std::vector<Expr> out;
    if (lexer_.accept_mark("]")) return out;
    do {
      if (out.size() >= kMaxRank) lexer_.fail_expected("at most " + std::to_string(kMaxRank) + " dimensions");
      out.push_back(exprs_.top_index());
    } while (lexer_.accept_mark(","));
    lexer_.expect_mark("]");
    return out;
  }
  void strides(BufferInfo& b) {
    if (!lexer_.accept_word("strides")) return;
    lexer_.expect_mark("[");
    b.strides = sizes();
  }

  Buffer parameter() {
    Token name;
    BufferInfo b = declaration(name);
    if (lexer_.accept_word("constant")) {
      b.space = Space::constant;
    } else {
      const int access = find_word(kAccessNames, lexer_.peek());
      if (access < 0) lexer_.fail_expected("in, out, inout, work or constant");
      lexer_.next();
      b.access = static_cast<Access>(access);
    }
    strides(b);
    auto buffer = std::make_shared<const BufferInfo>(std::move(b));
    names_.add(name, buffer);
    return buffer;
  }

  Phase phase() {
    lexer_.expect_word("phase");
    const Token name = lexer_.expect(TokenKind::name, "% and the task's name");
    lexer_.expect_word("in");
    const Token zero = lexer_.peek();
    if (exprs_.integer(0, 0, "the first task, 0,") != 0) Lexer::fail(zero, "tasks begin at 0");
    lexer_.expect_mark("..");
    Phase p{make_var(std::string(name.text)), exprs_.top_index(), {}};
    const size_t mark = names_.mark();
    names_.add(name, p.task);
    lexer_.expect_mark("{");
    p.body = body();
    names_.release(mark);
    return p;
  }

  /// Statements up to the closing brace.
  std::vector<Stmt> body() {
    const Nesting nesting(lexer_, nesting_);
    const size_t mark = names_.mark();
    std::vector<Stmt> out;
    while (!lexer_.accept_mark("}")) out.push_back(std::make_shared<const StmtNode>(statement()));
    names_.release(mark);
    return out;
  }

  StmtNode statement() {
    const Token at = lexer_.peek();
    if (at.kind == TokenKind::name) return store();
    if (lexer_.accept_mark("{")) {
      StmtNode n{StmtKind::block};
      n.body = body();
      return n;
    }
    if (lexer_.accept_word("for")) return loop();
    if (lexer_.accept_word("let")) return let();
    if (lexer_.accept_word("alloc")) return alloc();
    if (lexer_.accept_word("if")) return branch();
    if (lexer_.accept_word("prefetch")) return prefetch();
    if (lexer_.accept_word("barrier")) return StmtNode{StmtKind::barrier};
    if (lexer_.accept_word("fail")) {
      StmtNode n{StmtKind::fail};
      n.code = exprs_.integer(std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max(), "a fail code");
      return n;
    }
    lexer_.fail_expected("a statement (for, let, alloc, if, prefetch, barrier, fail, a store or '}')");
  }

  StmtNode loop() {
    StmtNode n{StmtKind::loop};
    const Token name = lexer_.expect(TokenKind::name, "% and the loop variable's name");
    n.variable = make_var(std::string(name.text));
    lexer_.expect_word("in");
    n.begin = exprs_.top_index();
    lexer_.expect_mark("..");
    n.end = exprs_.top_index();
    if (lexer_.accept_word("step")) n.step = exprs_.integer(1, std::numeric_limits<int64_t>::max(), "a step");
    if (const int kind = find_word(kLoopNames, lexer_.peek()); kind >= 0) {
      lexer_.next();
      n.loop = static_cast<LoopKind>(kind);
    }
    lexer_.expect_mark("{");
    const size_t mark = names_.mark();
    names_.add(name, n.variable);
    n.body = body();
    names_.release(mark);
    return n;
  }

  StmtNode let() {
    StmtNode n{StmtKind::let};
    const Token name = lexer_.expect(TokenKind::name, "% and a name");
    Type type;
    const bool typed = lexer_.accept_mark(":");
    if (typed) type = exprs_.type();
    lexer_.expect_mark("=");
    const Token at = lexer_.peek();
    n.value = exprs_.top();
    if (typed) n.value = exprs_.fit(at, n.value, type.lanes);
    if (typed && !(n.value.type() == type))
      Lexer::fail(at,
                  "the value of %" + std::string(name.text) + " is " + n.value.type().str() + ", not " + type.str());
    n.variable = make_var(std::string(name.text), n.value.type());
    names_.add(name, n.variable);
    return n;
  }

  StmtNode alloc() {
    StmtNode n{StmtKind::alloc};
    Token name;
    BufferInfo b = declaration(name);
    const int space = find_word(kSpaceNames, lexer_.peek());
    if (space != static_cast<int>(Space::scratch) && space != static_cast<int>(Space::reg) &&
        space != static_cast<int>(Space::shared))
      lexer_.fail_expected("scratch, reg or shared");
    lexer_.next();
    b.space = static_cast<Space>(space);
    strides(b);
    n.buffer = std::make_shared<const BufferInfo>(std::move(b));
    names_.add(name, n.buffer);
    return n;
  }

  StmtNode store() {
    StmtNode n{StmtKind::store};
    exprs_.begin_statement();
    const Token name = lexer_.next();
    Place p = exprs_.place(name);
    lexer_.expect_mark("=");
    const Token at = lexer_.peek();
    const int lanes = p.lanes ? p.lanes : p.buffer->type.lanes;
    n.value = exprs_.fit(at, exprs_.expr(), lanes);
    if (n.value.type().lanes != lanes)
      Lexer::fail(at, "the place has " + std::to_string(lanes) + " lanes, the value is " + n.value.type().str());
    if (p.mask) n.mask = exprs_.fit(name, p.mask, lanes);
    n.buffer = p.buffer;
    n.indices = std::move(p.indices);
    if (const std::string rule = broken_access_rule(*n.buffer, n.indices, n.value.type(), n.mask); !rule.empty())
      Lexer::fail(name, rule);
    return n;
  }

  StmtNode branch() {
    StmtNode n{StmtKind::branch};
    const Token at = lexer_.peek();
    n.value = exprs_.top();
    if (!(n.value.type() == kBool)) Lexer::fail(at, "a condition is a scalar bool, not " + n.value.type().str());
    lexer_.expect_mark("{");
    n.body = body();
    if (lexer_.accept_word("else")) {
      lexer_.expect_mark("{");
      n.otherwise = body();
    }
    return n;
  }

  StmtNode prefetch() {
    StmtNode n{StmtKind::prefetch};
    exprs_.begin_statement();
    const Token name = lexer_.expect(TokenKind::name, "% and the name of a buffer");
    Place p = exprs_.place(name);
    if (p.mask || p.lanes) Lexer::fail(name, "a prefetch has neither lanes nor a mask");
    n.buffer = p.buffer;
    n.indices = std::move(p.indices);
    if (const std::string rule = broken_access_rule(*n.buffer, n.indices, n.buffer->type, {}); !rule.empty())
      Lexer::fail(name, rule);
    lexer_.expect_word("level");
    n.code = exprs_.integer(1, 2, "a cache level");
    return n;
  }

  Lexer lexer_;
  Names names_;
  int nesting_ = 0;
  ExprParser exprs_;
};

}  // namespace

Kernel parse(std::string_view text) { return Parser(text).kernel(); }

}  // namespace cuvil::kernel
