// Read-only memory-mapped files.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace cuvil {

struct MappedFile {
  std::shared_ptr<const void> owner;  ///< unmaps when the last copy goes
  std::string_view bytes;
};

/// Maps a regular file. Throws Error with `status` naming the path and the cause (missing, a folder, not readable).
MappedFile map_file(const std::string& path, int status);

}  // namespace cuvil
