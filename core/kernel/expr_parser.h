// Expressions, types and scopes of the text form of Kernel IR. Private to parse.cpp and expr_parser.cpp.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/kernel/ir.h"
#include "core/kernel/lexer.h"

namespace cuvil::kernel {

/// Names that are visible; none hides another.
class Names {
 public:
  size_t mark() const { return order_.size(); }
  void release(size_t mark);
  void add(const Token& name, Var var);
  void add(const Token& name, Buffer buffer);
  Var var(const Token& name) const;
  Buffer buffer(const Token& name) const;
  bool is_buffer(const Token& name) const;

 private:
  struct Entry {
    Var var;
    Buffer buffer;
  };
  void add(const Token& name, Entry entry);
  const Entry& find(const Token& name) const;
  std::map<std::string, Entry, std::less<>> entries_;
  std::vector<std::string> order_;
};

/// Nesting of statements and brackets.
class Nesting {
 public:
  explicit Nesting(Lexer& lexer, int& depth);
  ~Nesting() { --depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  int& depth_;
};

/// Where a store or prefetch goes, or a load comes from.
struct Place {
  Buffer buffer;
  std::vector<Expr> indices;
  int lanes = 0;  ///< as written after ':'; 0: not written
  Expr mask;
};

class ExprParser {
 public:
  ExprParser(Lexer& lexer, Names& names, int& nesting) : lexer_(lexer), names_(names), nesting_(nesting) {}

  /// A whole expression with labels of its own.
  Expr top();
  Expr top_index();
  /// Starts a statement whose expressions share labels, as a store's.
  void begin_statement() { labels_.clear(); }
  Expr expr() { return binary(1).e; }
  Place place(const Token& name);
  Type type();
  int64_t integer(int64_t low, int64_t high, const char* what);
  /// A scalar beside a vector is broadcast; everything else stays.
  Expr fit(const Token& at, Expr e, int lanes);

 private:
  /// An expression and how deep it is: depth is bounded, since trees are walked by recursion.
  struct Operand {
    Expr e;
    int depth = 1;
  };
  Operand binary(int strength);
  Operand primary();
  Operand word(const Token& at);
  Operand call(Op op, const Token& at);
  Operand literal(const Token& at, DType dtype);
  Operand labelled(const Token& open);
  Operand make_node(const Token& at, ExprNode node, int depth);
  Operand lane_wise(const Token& at, Op op, std::vector<Operand> args);
  Operand load(const Token& name);

  Lexer& lexer_;
  Names& names_;
  int& nesting_;
  std::map<std::string, Operand, std::less<>> labels_;
  int depth_ = 0;  ///< of the deepest operand of the access that place() read
};

}  // namespace cuvil::kernel
