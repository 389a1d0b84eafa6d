// Objects on disk, shared by processes: a folder of 0700 whose owner is checked, entries verified by hash and renamed
// into place. Whatever goes wrong with it, kernels are compiled: it never throws.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cuvil::backends::cpu {

class ObjectCache {
 public:
  /// `folder` is made if missing; empty, or not safe to use (another owner, open to others): no cache.
  explicit ObjectCache(const std::string& folder);
  ~ObjectCache();
  ObjectCache(const ObjectCache&) = delete;
  ObjectCache& operator=(const ObjectCache&) = delete;

  /// CUVIL_CACHE_DIR and its defaults; empty if off.
  static std::string default_folder();

  bool enabled() const { return folder_ >= 0; }
  /// Entries that are missing, damaged or of another key are nothing.
  std::optional<std::vector<uint8_t>> find(std::string_view key) const noexcept;
  void insert(std::string_view key, const std::vector<uint8_t>& object) const noexcept;
  /// The entry's file name: 32 hexadecimal digits of two hashes.
  static std::string entry_name(std::string_view key);

 private:
  int folder_ = -1;  ///< a descriptor: what was checked stays what is used
};

}  // namespace cuvil::backends::cpu
