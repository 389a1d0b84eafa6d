#include "core/base/env.h"

#include <charconv>
#include <cstdlib>

#include "core/base/error.h"

namespace cuvil::env {

const Variable kVariables[] = {
    {"CUVIL_CACHE_DIR",
     "folder of the object cache; default $XDG_CACHE_HOME/cuvil or ~/.cache/cuvil; \"off\" disables it"},
    {"CUVIL_CACHE_MB", "most MiB that the object cache may take; default 1024"},
    {"CUVIL_DUMP", "print the program after a step of the pipeline: after:STEP, or all"},
    {"CUVIL_DUMP_DIR", "folder that gets each kernel as Kernel IR, LLVM IR and assembly"},
    {"CUVIL_VERIFY", "1: verify the IR after every pass"},
    {"CUVIL_SKIP", "comma-separated names of optional passes to skip"},
    {"CUVIL_NUM_THREADS", "threads of the runtime's pool; default: cores that cgroup and affinity allow"},
    {"CUVIL_COMPILE_THREADS", "threads that compile kernels; default: as above"},
    {"CUVIL_BLESS", "1: golden tests rewrite their expectations"},
};
const int kVariableCount = sizeof(kVariables) / sizeof(kVariables[0]);

std::optional<std::string> get(std::string_view name) {
  for (const Variable& v : kVariables) {
    if (v.name != name) continue;
    const char* value = std::getenv(std::string(name).c_str());
    if (!value || !*value) return std::nullopt;
    return std::string(value);
  }
  throw_internal("environment variable " + std::string(name) + " is not in the table of core/base/env.cpp");
}

std::optional<int64_t> number(std::string_view name, int64_t least, int64_t most) {
  const std::optional<std::string> text = get(name);
  if (!text) return std::nullopt;
  int64_t value = 0;
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc() || stop != end || value < least || value > most)
    throw_unsupported(std::string(name) + " is '" + *text + "'; it must be a number from " + std::to_string(least) +
                      " to " + std::to_string(most));
  return value;
}

std::string cache_folder() {
  if (const auto folder = get("CUVIL_CACHE_DIR")) return *folder == "off" ? "" : *folder;
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  if (xdg && *xdg == '/') return std::string(xdg) + "/cuvil";
  const char* home = std::getenv("HOME");
  return home && *home == '/' ? std::string(home) + "/.cache/cuvil" : "";
}

}  // namespace cuvil::env
