// Reads the tokens of the text form from bytes that may be anything.
#pragma once

#include <string>
#include <string_view>

namespace cuvil::ir::text {

class Reader {
 public:
  Reader(std::string_view text, std::string source) : text_(text), source_(std::move(source)) {}

  /// "resnet.cir:3:14: " of the position, for messages.
  std::string where() const { return where(at_); }

 protected:
  /// Throws ModelError: where, and `message`.
  [[noreturn]] void fail(const std::string& message) const { fail_at(at_, message); }
  [[noreturn]] void fail_at(size_t at, const std::string& message) const;

  // Positions. start() passes over white space and comments first.
  size_t position() const { return at_; }
  size_t start();
  void go_to(size_t at) { at_ = at; }
  bool at_end() const { return at_ == text_.size(); }
  char front() const { return text_[at_]; }
  void advance() { ++at_; }
  std::string_view between(size_t from, size_t to) const { return text_.substr(from, to - from); }
  /// Fails unless nothing but white space is left.
  void end();

  // Punctuation: exactly these bytes. Words: not followed by a character of a name.
  bool peek(std::string_view token);
  bool accept(std::string_view token);
  void expect(std::string_view token);
  bool accept_word(std::string_view word);
  void word(std::string_view word);

  /// A bare or quoted name.
  std::string name();
  /// [A-Za-z_][A-Za-z0-9_.]*; `what` is for the message.
  std::string identifier(std::string_view what);
  std::string string(char mark = '"');
  bool at_number();
  /// The characters of a decimal number, "-inf" included; not yet checked.
  std::string_view number_text();

  static std::string_view trim(std::string_view s);
  /// Short enough for a message, printable.
  static std::string clip(std::string_view s);

 private:
  std::string where(size_t at) const;
  std::string found() const;

  std::string_view text_;
  std::string source_;
  size_t at_ = 0;
};

}  // namespace cuvil::ir::text
