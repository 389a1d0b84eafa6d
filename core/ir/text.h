// What printer and parser of the text form share: names, strings, numbers.
#pragma once

#include <string>
#include <string_view>

namespace cuvil::ir::text {

/// Regions inside regions, at most: what parse() accepts and verify() asks for.
inline constexpr int kMaxNesting = 32;

inline bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '/';
}
/// Names of these characters stand bare behind % or @, others in quotes.
bool is_bare_name(std::string_view name);

/// In quotes, with \", \\, \n, \t and \xHH for what is not printable UTF-8.
std::string quote(std::string_view s, char mark = '"');

/// The shortest decimal that reads back as the same number and does not read as an integer: "1.0", "1e-05", "inf".
std::string real(double v);
std::string real(float v);

}  // namespace cuvil::ir::text
