#include "core/ir/text_reader.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/ir/text.h"

namespace cuvil::ir::text {
namespace {
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_identifier_char(char c) { return is_name_char(c) && c != '/'; }
}  // namespace

std::string Reader::where(size_t at) const {
  const std::string_view before = text_.substr(0, at);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t newline = before.rfind('\n');
  const size_t column = at - (newline == std::string_view::npos ? 0 : newline + 1) + 1;
  return (source_.empty() ? "CIR text" : source_) + ":" + std::to_string(line) + ":" + std::to_string(column) + ": ";
}

void Reader::fail_at(size_t at, const std::string& message) const { throw_model_error(where(at) + message); }

std::string Reader::clip(std::string_view s) {
  const bool cut = s.size() > 40;
  const std::string q = quote(s.substr(0, 40));
  return q.substr(1, q.size() - 2) + (cut ? "..." : "");
}

std::string Reader::found() const {
  if (at_end()) return "the end of the text";
  size_t stop = at_;
  while (stop < text_.size() && is_name_char(text_[stop])) ++stop;
  return "'" + clip(text_.substr(at_, std::max<size_t>(1, stop - at_))) + "'";
}

size_t Reader::start() {
  for (;;) {
    while (!at_end() && (front() == ' ' || front() == '\n' || front() == '\t' || front() == '\r')) ++at_;
    if (text_.substr(at_, 2) != "//") return at_;
    at_ = std::min(text_.find('\n', at_), text_.size());
  }
}

void Reader::end() {
  start();
  if (!at_end()) fail("expected the end of the text, found " + found());
}

bool Reader::peek(std::string_view token) { return start(), text_.substr(at_, token.size()) == token; }

bool Reader::accept(std::string_view token) {
  if (!peek(token)) return false;
  at_ += token.size();
  return true;
}

void Reader::expect(std::string_view token) {
  if (!accept(token)) fail("expected '" + std::string(token) + "', found " + found());
}

bool Reader::accept_word(std::string_view word) {
  if (!peek(word)) return false;
  const size_t next = at_ + word.size();
  if (next < text_.size() && is_name_char(text_[next])) return false;
  at_ = next;
  return true;
}

void Reader::word(std::string_view word) {
  if (!accept_word(word)) fail("expected '" + std::string(word) + "', found " + found());
}

std::string Reader::name() {
  if (peek("\"")) return string();
  const size_t begin = at_;
  while (!at_end() && is_name_char(front()) && text_.substr(at_, 2) != "//") ++at_;
  if (at_ == begin) fail("expected a name, found " + found());
  return std::string(between(begin, at_));
}

std::string Reader::identifier(std::string_view what) {
  const size_t begin = start();
  if (at_end() || is_digit(front()) || front() == '.' || !is_identifier_char(front()))
    fail("expected " + std::string(what) + ", found " + found());
  while (!at_end() && is_identifier_char(front())) ++at_;
  return std::string(between(begin, at_));
}

std::string Reader::string(char mark) {
  const size_t begin = start();
  expect(std::string_view(&mark, 1));
  std::string s;
  for (;;) {
    if (at_end()) fail_at(begin, "this string has no end");
    const char c = front();
    advance();
    if (c == mark) return s;
    if (c != '\\') {
      s += c;
      continue;
    }
    if (at_end()) fail_at(begin, "this string has no end");
    const char e = front();
    advance();
    if (e == 'n' || e == 't') {
      s += e == 'n' ? '\n' : '\t';
    } else if (e == 'x') {
      int v = 0;
      for (int i = 0; i < 2; ++i) {
        const char h = at_end() ? ' ' : front();
        const int d = is_digit(h)            ? h - '0'
                      : h >= 'a' && h <= 'f' ? h - 'a' + 10
                      : h >= 'A' && h <= 'F' ? h - 'A' + 10
                                             : -1;
        if (d < 0) fail("\\x needs two hexadecimal digits");
        v = v * 16 + d;
        advance();
      }
      s += static_cast<char>(v);
    } else if (e == '\\' || e == '"' || e == '\'') {
      s += e;
    } else {
      fail("there is no escape '\\" + clip(std::string_view(&e, 1)) + "'");
    }
  }
}

bool Reader::at_number() {
  start();
  if (at_end()) return false;
  return is_digit(front()) ||
         (front() == '-' && at_ + 1 < text_.size() && (is_digit(text_[at_ + 1]) || text_.substr(at_ + 1, 3) == "inf"));
}

std::string_view Reader::number_text() {
  const size_t begin = start();
  if (!at_number()) fail("expected a number, found " + found());
  if (accept("-inf")) return between(begin, at_);
  while (!at_end()) {
    const char c = front();
    const bool sign = (c == '-' || c == '+') && (at_ == begin || text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
    if (!sign && !is_identifier_char(c)) break;
    ++at_;
  }
  return between(begin, at_);
}

std::string_view Reader::trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\n' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\n' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

}  // namespace cuvil::ir::text
