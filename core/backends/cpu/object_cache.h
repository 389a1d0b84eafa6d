// Objects on disk, shared by processes: a folder of 0700 whose owner is checked, entries verified by hash and renamed
// into place. Whatever goes wrong with it, kernels are compiled: it never throws.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cuvil::backends::cpu {

class ObjectCache {
 public:
  static constexpr int64_t kDefaultMostBytes = int64_t{1} << 30;

  /// `folder` is made if missing; empty, or not safe to use (another owner, open to others): no cache. Entries of more
  /// than `most_bytes` together are not kept: those unused for longest go.
  explicit ObjectCache(const std::string& folder, int64_t most_bytes = kDefaultMostBytes);
  ~ObjectCache();
  ObjectCache(const ObjectCache&) = delete;
  ObjectCache& operator=(const ObjectCache&) = delete;

  /// CUVIL_CACHE_DIR and its defaults; empty if off.
  static std::string default_folder();
  /// CUVIL_CACHE_MB in bytes, or kDefaultMostBytes. Throws UnsupportedError if it is no number.
  static int64_t default_most_bytes();

  bool enabled() const { return folder_ >= 0; }
  /// Entries that are missing, damaged or of another key are nothing. What is found counts as used now.
  std::optional<std::vector<uint8_t>> find(std::string_view key) const noexcept;
  void insert(std::string_view key, const std::vector<uint8_t>& object) const noexcept;
  /// The entry's file name: 32 hexadecimal digits of two hashes.
  static std::string entry_name(std::string_view key);

 private:
  /// Counts new bytes; above the bound, removes the entries unused for longest until a quarter of it is free.
  void make_room(int64_t added) const;

  int folder_ = -1;  ///< a descriptor: what was checked stays what is used
  int64_t most_bytes_;
  mutable std::mutex mutex_;         ///< of used_bytes_
  mutable int64_t used_bytes_ = -1;  ///< as counted at the first insertion, and what was added since; -1: not yet
};

}  // namespace cuvil::backends::cpu
