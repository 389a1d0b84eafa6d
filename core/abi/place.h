// The one algorithm that places buffers with lifetimes into an arena: at compile time for static shapes, in the
// runtime when symbolic shapes become known. Deterministic, no allocation, no dependency but <algorithm>.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/abi/abi.h"

namespace cuvil {

struct PlaceItem {
  int64_t bytes = 0;   ///< >= 0
  uint32_t first = 0;  ///< first step that touches it
  uint32_t last = 0;   ///< last step that touches it, >= first
};

struct Placement {
  int64_t arena_bytes = 0;
  int64_t lower_bound = 0;  ///< largest sum of bytes alive at one step, each rounded up to CUVIL_ALIGNMENT
};

/// Room that place() needs, in uint32_t, for n items and steps 0..steps-1; and in int64_t.
inline constexpr size_t place_work_u32(size_t n) { return 3 * n; }
inline constexpr size_t place_work_i64(size_t n, size_t steps) { return n + steps + 1; }

namespace detail {

inline int64_t place_size(const PlaceItem& item) {
  return (item.bytes + CUVIL_ALIGNMENT - 1) / CUVIL_ALIGNMENT * CUVIL_ALIGNMENT;
}

/// Puts items in `order` one by one into the lowest gap (first fit) or the tightest gap (best fit) between the placed
/// items that are alive at the same time. `placed` is kept sorted by offset.
inline int64_t place_in_order(const PlaceItem* items, const uint32_t* order, size_t n, bool best_fit, uint32_t* placed,
                              int64_t* offsets) {
  int64_t arena = 0;
  for (size_t k = 0; k < n; ++k) {
    const PlaceItem& item = items[order[k]];
    const int64_t size = place_size(item);
    int64_t end = 0, at = -1, tightest = 0;  // end: of the live items seen so far
    for (size_t p = 0; p < k && size > 0; ++p) {
      const PlaceItem& other = items[placed[p]];
      if (other.last < item.first || item.last < other.first) continue;
      const int64_t gap = offsets[placed[p]] - end;
      if (gap >= size && (at < 0 || (best_fit && gap < tightest))) {
        at = end;
        tightest = gap;
        if (!best_fit) break;
      }
      end = std::max(end, offsets[placed[p]] + place_size(other));
    }
    if (at < 0) at = size > 0 ? end : 0;
    offsets[order[k]] = at;
    arena = std::max(arena, at + size);
    size_t p = k;
    for (; p > 0 && offsets[placed[p - 1]] > at; --p) placed[p] = placed[p - 1];
    placed[p] = order[k];
  }
  return arena;
}

}  // namespace detail

/// Writes the byte offset (a multiple of CUVIL_ALIGNMENT) of each item to offsets[0..n). Items alive at a common step
/// do not overlap. Tries first and best fit by decreasing size, by decreasing size times lifetime and by first step,
/// stops at the lower bound and keeps the smallest arena; ties go to the earlier try.
/// Source: greedy by size, Pisarchyk & Lee, "Efficient Memory Management for Deep Neural Net Inference" (2020).
/// O(n^2 + n * steps). Sizes whose sum overflows int64 are the caller's to refuse.
inline Placement place(const PlaceItem* items, size_t n, size_t steps, int64_t* offsets, uint32_t* work_u32,
                       int64_t* work_i64) {
  Placement result;
  int64_t* alive = work_i64 + n;
  std::fill(alive, alive + steps + 1, int64_t{0});
  for (size_t i = 0; i < n; ++i) {
    alive[items[i].first] += detail::place_size(items[i]);
    alive[items[i].last + 1] -= detail::place_size(items[i]);
  }
  for (size_t s = 0, sum = 0; s < steps; ++s) {
    sum += static_cast<size_t>(alive[s]);
    result.lower_bound = std::max(result.lower_bound, static_cast<int64_t>(sum));
  }
  uint32_t *order = work_u32, *placed = work_u32 + n;
  int64_t* trial = work_i64;
  for (int attempt = 0; attempt < 6; ++attempt) {
    if (attempt > 0 && result.arena_bytes == result.lower_bound) break;
    for (size_t i = 0; i < n; ++i) order[i] = static_cast<uint32_t>(i);
    const int key = attempt / 2;
    std::sort(order, order + n, [&](uint32_t a, uint32_t b) {
      const PlaceItem &x = items[a], &y = items[b];
      if (key == 1) {
        const auto area = [](const PlaceItem& item) { return double(item.bytes) * (item.last - item.first + 1.0); };
        if (area(x) != area(y)) return area(x) > area(y);
      }
      if (key == 2 && x.first != y.first) return x.first < y.first;
      return x.bytes != y.bytes ? x.bytes > y.bytes : a < b;
    });
    const int64_t arena = detail::place_in_order(items, order, n, attempt % 2 == 1, placed, trial);
    if (attempt == 0 || arena < result.arena_bytes) {
      result.arena_bytes = arena;
      std::copy(trial, trial + n, offsets);
    }
  }
  return result;
}

}  // namespace cuvil
