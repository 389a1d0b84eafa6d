// Tokens of the text form of Kernel IR.
#pragma once

#include <string>
#include <string_view>

namespace cuvil::kernel {

enum class TokenKind : uint8_t {
  end,
  word,      ///< kernel, for, f32x16, exp
  name,      ///< %x, without the sign
  symbol,    ///< @x, without the sign
  label,     ///< #1, without the sign
  integer,   ///< digits
  floating,  ///< digits with a point or an exponent
  mark,      ///< an operator or a bracket
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;
  int line = 1, column = 1;
  bool is(TokenKind k, std::string_view t) const { return kind == k && text == t; }
};

/// Splits text into tokens, one ahead. Errors are ModelErrors with line and column.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { advance(); }

  const Token& peek() const { return token_; }
  Token next();
  bool accept_mark(std::string_view text) { return accept(TokenKind::mark, text); }
  bool accept_word(std::string_view text) { return accept(TokenKind::word, text); }
  void expect_mark(std::string_view text);
  void expect_word(std::string_view text);
  /// A token of that kind; `what` says it in the message.
  Token expect(TokenKind kind, std::string_view what);

  /// "kernel text, line 3, column 7: expected ..., found ..."
  [[noreturn]] void fail_expected(std::string_view expected) const;
  [[noreturn]] static void fail(const Token& at, const std::string& message);

 private:
  bool accept(TokenKind kind, std::string_view text);
  void advance();
  void skip_blank();
  char at(size_t i) const { return i < text_.size() ? text_[i] : '\0'; }
  void take(TokenKind kind, size_t skip, size_t length);
  void number();

  std::string_view text_;
  size_t position_ = 0, line_start_ = 0;
  int line_ = 1;
  Token token_;
};

}  // namespace cuvil::kernel
