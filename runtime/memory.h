// Owned memory without exceptions: small arrays from malloc, big regions from mmap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace cuvil::runtime {

/// A zeroed array of fixed size. Elements are plain data.
template <typename T>
class Array {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  Array() = default;
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { free(data_); }

  /// False if memory is short. Drops what was there.
  bool allocate(size_t n) {
    free(data_);
    data_ = static_cast<T*>(calloc(n ? n : 1, sizeof(T)));
    size_ = data_ ? n : 0;
    return data_ != nullptr;
  }
  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

/// Page-aligned memory straight from the kernel, in huge pages where it is large. Grows, never shrinks; growing drops
/// the contents.
class Region {
 public:
  Region() = default;
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region() { release(); }

  /// Makes room for `bytes`; false if memory is short, the old memory is gone then.
  bool reserve(size_t bytes);
  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void release();
  char* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace cuvil::runtime
