// The one table of environment variables. Nothing else in the compiler calls getenv.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cuvil::env {

struct Variable {
  std::string_view name;
  std::string_view help;
};
/// All variables with their meaning; docs/environment.md is checked against it.
extern const Variable kVariables[];
extern const int kVariableCount;

/// Value of a variable of the table; nullopt if unset or empty. Throws an internal error for a name not in the table.
std::optional<std::string> get(std::string_view name);

/// A variable of the table as a whole number; nullopt if unset or empty. Throws UnsupportedError if it is no number
/// from `least` to `most`.
std::optional<int64_t> number(std::string_view name, int64_t least, int64_t most);

/// The folder that CUVIL_CACHE_DIR names, or its default; empty if "off", or if there is no home folder.
std::string cache_folder();

}  // namespace cuvil::env
