#include "runtime/memory.h"

#include <sys/mman.h>

namespace cuvil::runtime {

namespace {
constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;
}  // namespace

bool Region::reserve(size_t bytes) {
  if (bytes <= bytes_) return true;
  release();
  const bool huge = bytes >= 2 * kHugePage;
  const size_t unit = huge ? kHugePage : kPage;
  if (bytes > SIZE_MAX - 2 * unit) return false;
  const size_t rounded = (bytes + kPage - 1) / kPage * kPage;
  const size_t mapped = huge ? rounded + kHugePage : rounded;
  void* p = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return false;
  char* start = static_cast<char*>(p);
  if (huge) {  // keep an aligned part, so that whole huge pages fit
    const size_t skip = (kHugePage - reinterpret_cast<uintptr_t>(start) % kHugePage) % kHugePage;
    if (skip > 0) munmap(start, skip);
    if (skip < kHugePage) munmap(start + skip + rounded, kHugePage - skip);
    start += skip;
    madvise(start, rounded, MADV_HUGEPAGE);
  }
  data_ = start;
  bytes_ = rounded;
  return true;
}

void Region::release() {
  if (data_) munmap(data_, bytes_);
  data_ = nullptr;
  bytes_ = 0;
}

}  // namespace cuvil::runtime
