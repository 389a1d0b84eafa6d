#include "core/base/error.h"

namespace cuvil {

std::string Location::str() const {
  std::string s = file;
  if (line > 0) s += ":" + std::to_string(line);
  if (!function.empty()) s += " in " + function;
  if (!module_path.empty()) s += (s.empty() ? "" : " ") + ("(" + module_path + ")");
  if (!variable.empty()) s += (s.empty() ? "" : " ") + ("'" + variable + "'");
  return s;
}

Error::Error(cuvil_status status, const std::string& message, const Location& where)
    : std::runtime_error(where.known() ? message + "\n  at " + where.str() : message), status_(status) {}

void throw_model_error(const std::string& message, const Location& where) {
  throw Error(CUVIL_MODEL_ERROR, message, where);
}
void throw_unsupported(const std::string& message, const Location& where) {
  throw Error(CUVIL_UNSUPPORTED_ERROR, message, where);
}
void throw_shape_error(const std::string& message, const Location& where) {
  throw Error(CUVIL_SHAPE_ERROR, message, where);
}
void throw_internal(const std::string& message, const Location& where) {
  throw Error(
      CUVIL_INTERNAL_ERROR,
      "internal error: " + message + "\n  This is a bug in Cuvil. Please report it with the model and this message.",
      where);
}

}  // namespace cuvil
