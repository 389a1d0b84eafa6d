#include "core/ir/text.h"

#include <algorithm>
#include <charconv>

namespace cuvil::ir::text {
namespace {

/// Length of the well-formed UTF-8 sequence at the front, 0 if there is none.
size_t utf8_length(std::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char c = byte(0);
  const size_t n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
  if (n == 0 || s.size() < n) return 0;
  for (size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Overlong forms, surrogates, and beyond U+10FFFF.
  if ((c == 0xe0 && byte(1) < 0xa0) || (c == 0xed && byte(1) >= 0xa0) || (c == 0xf0 && byte(1) < 0x90) ||
      (c == 0xf4 && byte(1) >= 0x90))
    return 0;
  return n;
}

template <class T>
std::string shortest(T v) {
  if (v != v) return "nan";
  char buffer[40];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, v);
  std::string s(buffer, end);
  if (s.find_first_not_of("-0123456789") == std::string::npos) s += ".0";
  return s;
}

}  // namespace

bool is_bare_name(std::string_view name) {
  // "//" begins a comment.
  return !name.empty() && std::all_of(name.begin(), name.end(), is_name_char) &&
         name.find("//") == std::string_view::npos;
}

std::string quote(std::string_view s, char mark) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out(1, mark);
  while (!s.empty()) {
    const char c = s[0];
    const size_t n = utf8_length(s);
    if (c == '\n' || c == '\t') {
      out += c == '\n' ? "\\n" : "\\t";
    } else if (c == mark || c == '\\') {
      out += '\\';
      out += c;
    } else if (n == 0 || (n == 1 && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f))) {
      out += "\\x";
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[c & 15];
    } else {
      out += s.substr(0, n);
    }
    s.remove_prefix(n == 0 ? 1 : n);
  }
  return out + mark;
}

std::string real(double v) { return shortest(v); }
std::string real(float v) { return shortest(v); }

}  // namespace cuvil::ir::text
