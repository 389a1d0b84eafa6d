#include "core/kernel/lexer.h"

#include "core/base/error.h"
#include "core/kernel/syntax.h"

namespace cuvil::kernel {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Text for a message: short, printable.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (char c : text.substr(0, 40)) out += c >= ' ' && c <= '~' ? c : '?';
  return out + (text.size() > 40 ? "...'" : "'");
}

}  // namespace

void Lexer::skip_blank() {
  for (; position_ < text_.size(); ++position_) {
    const char c = text_[position_];
    if (c == '\n') {
      ++line_;
      line_start_ = position_ + 1;
    } else if (c == '/' && at(position_ + 1) == '/') {
      while (position_ + 1 < text_.size() && text_[position_ + 1] != '\n') ++position_;
    } else if (c != ' ' && c != '\t' && c != '\r') {
      return;
    }
  }
}

void Lexer::take(TokenKind kind, size_t skip, size_t length) {
  token_.kind = kind;
  token_.text = text_.substr(position_ + skip, length);
  position_ += skip + length;
}

void Lexer::number() {
  size_t i = position_;
  bool floating = false;
  while (is_digit(at(i))) ++i;
  if (at(i) == '.' && is_digit(at(i + 1))) {
    floating = true;
    for (++i; is_digit(at(i)); ++i) {
    }
  }
  if (at(i) == 'e') {
    const size_t digits = i + (at(i + 1) == '-' || at(i + 1) == '+' ? 2 : 1);
    if (is_digit(at(digits))) {
      floating = true;
      for (i = digits; is_digit(at(i)); ++i) {
      }
    }
  }
  take(floating ? TokenKind::floating : TokenKind::integer, 0, i - position_);
}

void Lexer::advance() {
  skip_blank();
  token_ = {TokenKind::end, {}, line_, static_cast<int>(position_ - line_start_) + 1};
  if (position_ >= text_.size()) return;
  const char c = text_[position_];
  size_t length = 0;
  while (is_name_char(at(position_ + 1 + length))) ++length;
  if ((c == '%' || c == '@' || c == '#') && length > 0) {
    take(c == '%' ? TokenKind::name : c == '@' ? TokenKind::symbol : TokenKind::label, 1, length);
    return;
  }
  if (is_digit(c)) {
    number();
    return;
  }
  if (is_name_char(c)) {
    take(TokenKind::word, 0, length + 1);
    return;
  }
  for (std::string_view two : {"==", "!=", "<=", ">=", "<<", ">>", ".."})
    if (c == two[0] && at(position_ + 1) == two[1]) {
      take(TokenKind::mark, 0, 2);
      return;
    }
  if (std::string_view("()[]{}<>,:?=+-*/%&|^").find(c) == std::string_view::npos)
    fail(token_, "unexpected character " + quoted(text_.substr(position_, 1)));
  take(TokenKind::mark, 0, 1);
}

Token Lexer::next() {
  const Token t = token_;
  advance();
  return t;
}

bool Lexer::accept(TokenKind kind, std::string_view text) {
  if (!token_.is(kind, text)) return false;
  advance();
  return true;
}

void Lexer::expect_mark(std::string_view text) {
  if (!accept_mark(text)) fail_expected(quoted(text));
}
void Lexer::expect_word(std::string_view text) {
  if (!accept_word(text)) fail_expected(quoted(text));
}
Token Lexer::expect(TokenKind kind, std::string_view what) {
  if (token_.kind != kind) fail_expected(what);
  return next();
}

void Lexer::fail_expected(std::string_view expected) const {
  static constexpr std::string_view kSigns[] = {"", "", "%", "@", "#", "", "", ""};
  const std::string found = token_.kind == TokenKind::end
                                ? "the end of the text"
                                : quoted(std::string(kSigns[static_cast<int>(token_.kind)]) + std::string(token_.text));
  fail(token_, "expected " + std::string(expected) + ", found " + found);
}

void Lexer::fail(const Token& at, const std::string& message) {
  throw_model_error("kernel text, line " + std::to_string(at.line) + ", column " + std::to_string(at.column) + ": " +
                    message);
}

}  // namespace cuvil::kernel
