#include "core/backends/cpu/object_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <tuple>

#include "core/abi/hash.h"
#include "core/base/env.h"

namespace cuvil::backends::cpu {
namespace {

constexpr char kMagic[8] = {'C', 'V', 'L', 'O', 'B', 'J', '0', '1'};
constexpr uint64_t kSecondSeed = 0x9216D5D98979FB1Bull, kThirdSeed = 0xD1310BA698DFB5ACull;

struct EntryHeader {
  char magic[8];
  uint64_t key_bytes, key_hash;  ///< with another seed than the file's name
  uint64_t object_bytes, object_hash;
};

constexpr off_t kMaxEntryBytes = off_t{64} << 20;

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

bool read_all(int fd, void* to, size_t bytes) {
  auto* p = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t n = ::read(fd, p, bytes);
    if (n <= 0) return false;
    p += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

bool write_all(int fd, const void* from, size_t bytes) {
  const auto* p = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t n = ::write(fd, p, bytes);
    if (n <= 0) return false;
    p += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

EntryHeader header_of(std::string_view key, const std::vector<uint8_t>& object) {
  EntryHeader h{};
  std::memcpy(h.magic, kMagic, sizeof(kMagic));
  h.key_bytes = key.size();
  h.key_hash = xxh64(key.data(), key.size(), kThirdSeed);
  h.object_bytes = object.size();
  h.object_hash = xxh64(object.data(), object.size());
  return h;
}

struct Entry {
  struct timespec used;
  std::string name;
  int64_t bytes;
};

/// All files of the folder, those that a killed process left half written included.
std::vector<Entry> entries_of(int folder) {
  std::vector<Entry> entries;
  const int fd = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> list(fd < 0 ? nullptr : ::fdopendir(fd), ::closedir);
  if (!list) {
    if (fd >= 0) ::close(fd);
    return entries;
  }
  while (const dirent* file = ::readdir(list.get())) {
    struct stat s{};
    if (::fstatat(folder, file->d_name, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(s.st_mode))
      entries.push_back({s.st_mtim, file->d_name, static_cast<int64_t>(s.st_size)});
  }
  return entries;
}

}  // namespace

std::string ObjectCache::default_folder() {
  const std::string folder = env::cache_folder();
  return folder.empty() ? folder : folder + "/objects";
}

int64_t ObjectCache::default_most_bytes() {
  const auto mebibytes = env::number("CUVIL_CACHE_MB", 1, int64_t{1} << 30);
  return mebibytes ? *mebibytes << 20 : kDefaultMostBytes;
}

std::string ObjectCache::entry_name(std::string_view key) {
  char name[33];
  std::snprintf(name, sizeof(name), "%016llx%016llx", static_cast<unsigned long long>(xxh64(key.data(), key.size())),
                static_cast<unsigned long long>(xxh64(key.data(), key.size(), kSecondSeed)));
  return name;
}

ObjectCache::ObjectCache(const std::string& folder, int64_t most_bytes) : most_bytes_(most_bytes) {
  if (folder.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), ignored);
  ::mkdir(folder.c_str(), 0700);
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return;
  struct stat s{};
  const bool safe = ::fstat(fd, &s) == 0 && s.st_uid == ::geteuid() && (s.st_mode & 077) == 0;
  if (safe) {
    folder_ = fd;
  } else {
    ::close(fd);
  }
}

ObjectCache::~ObjectCache() {
  if (folder_ >= 0) ::close(folder_);
}

std::optional<std::vector<uint8_t>> ObjectCache::find(std::string_view key) const noexcept try {
  if (!enabled()) return std::nullopt;
  const File file(::openat(folder_, entry_name(key).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat s{};
  EntryHeader h;
  if (file.fd() < 0 || ::fstat(file.fd(), &s) != 0 || !S_ISREG(s.st_mode) || s.st_uid != ::geteuid() ||
      s.st_size < static_cast<off_t>(sizeof(h)) || s.st_size > kMaxEntryBytes || !read_all(file.fd(), &h, sizeof(h)))
    return std::nullopt;
  std::vector<uint8_t> object(static_cast<size_t>(s.st_size) - sizeof(h));
  if (!read_all(file.fd(), object.data(), object.size())) return std::nullopt;
  const EntryHeader expected = header_of(key, object);
  if (std::memcmp(&h, &expected, sizeof(h)) != 0) return std::nullopt;
  ::futimens(file.fd(), nullptr);
  return object;
} catch (...) {
  return std::nullopt;
}

void ObjectCache::insert(std::string_view key, const std::vector<uint8_t>& object) const noexcept try {
  if (!enabled() || object.size() > static_cast<size_t>(kMaxEntryBytes) / 2) return;
  static std::atomic<unsigned> counter{0};
  const std::string temporary = ".new-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
  bool written = false;
  {
    const File file(::openat(folder_, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file.fd() < 0) return;
    const EntryHeader h = header_of(key, object);
    written = write_all(file.fd(), &h, sizeof(h)) && write_all(file.fd(), object.data(), object.size());
  }
  if (!written || ::renameat(folder_, temporary.c_str(), folder_, entry_name(key).c_str()) != 0) {
    ::unlinkat(folder_, temporary.c_str(), 0);
    return;
  }
  make_room(static_cast<int64_t>(sizeof(EntryHeader) + object.size()));
} catch (...) {  // NOLINT: a cache that fails is no cache
}

void ObjectCache::make_room(int64_t added) const {
  const std::lock_guard lock(mutex_);
  if (used_bytes_ >= 0 && (used_bytes_ += added) <= most_bytes_) return;
  // Counted anew: other processes write and remove, too.
  std::vector<Entry> entries = entries_of(folder_);
  used_bytes_ = 0;
  for (const Entry& e : entries) used_bytes_ += e.bytes;
  if (used_bytes_ <= most_bytes_) return;
  const auto age = [](const Entry& e) { return std::tie(e.used.tv_sec, e.used.tv_nsec, e.name); };
  std::sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) { return age(a) < age(b); });
  for (const Entry& e : entries) {
    if (used_bytes_ <= most_bytes_ / 4 * 3) break;
    if (::unlinkat(folder_, e.name.c_str(), 0) == 0) used_bytes_ -= e.bytes;
  }
}

}  // namespace cuvil::backends::cpu
