// Errors of the compiler. Inside the compiler an Error is thrown; the driver's borders (C++ API, bindings) turn it into
// a status and a text. The runtime has no exceptions and uses cuvil_status directly.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "core/abi/abi.h"

namespace cuvil {

/// Where in the user's sources something came from. Any part may be unknown (empty, 0).
struct Location {
  std::string file;         ///< source file or model file
  int line = 0;             ///< 1-based; 0 = unknown
  std::string function;     ///< Python function
  std::string module_path;  ///< e.g. "layer1.0.conv2"
  std::string variable;     ///< the user's variable, or the node's name in the model file
  bool known() const { return !file.empty() || !module_path.empty() || !variable.empty(); }
  /// "model.onnx: node 'Conv_3'" or "net.py:12 in forward (layer1.conv2) 'h'"
  std::string str() const;
  bool operator==(const Location&) const = default;
};

/// An error with a cause that a user can act on. what() holds the whole message: what, where, what to do.
class Error : public std::runtime_error {
 public:
  Error(cuvil_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  Error(cuvil_status status, const std::string& message, const Location& where);
  cuvil_status status() const { return status_; }

 private:
  cuvil_status status_;
};

[[noreturn]] void throw_model_error(const std::string& message, const Location& where = {});
[[noreturn]] void throw_unsupported(const std::string& message, const Location& where = {});
[[noreturn]] void throw_shape_error(const std::string& message, const Location& where = {});
/// A broken invariant of ours; says how to report it.
[[noreturn]] void throw_internal(const std::string& message, const Location& where = {});

}  // namespace cuvil

/// Invariant of ours: on failure throws an internal error that names the condition and the place.
#define CUVIL_CHECK(cond, message)                                                                                     \
  do {                                                                                                                 \
    if (!(cond))                                                                                                       \
      ::cuvil::throw_internal(std::string(message) + " [" #cond " at " __FILE__ ":" + std::to_string(__LINE__) + "]"); \
  } while (0)
