// Vector, masked and gathering accesses of the interpreter, each lane checked.
#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/kernel/machine.h"

namespace cuvil::kernel {
namespace {

int64_t index_at(const Machine& m, uint32_t place, uint32_t lane = 0) {
  int64_t v;
  std::memcpy(&v, m.frame + place + 8 * size_t{lane}, 8);
  return v;
}

/// Calls f(lane, scalar offset) for every lane that the mask leaves, after checking its indices; `block` is called
/// instead if all lanes lie side by side and none is masked.
template <class Block, class Lane>
void each_lane(const Machine& m, const AccessPlan& a, const BufferState& b, const Block& block, const Lane& f) {
  const unsigned char* mask = a.masked ? m.frame + a.mask : nullptr;
  if (mask && std::all_of(mask, mask + a.lanes, [](unsigned char x) { return x == 0; })) return;
  if (a.form == AccessPlan::Form::gather) {
    for (uint32_t l = 0; l < a.lanes; ++l) {
      if (mask && !mask[l]) continue;
      int64_t offset = 0;
      for (uint32_t d = 0; d < b.rank; ++d) {
        const int64_t i = index_at(m, a.indices[d], l);
        if (i < 0 || i >= b.extents[d]) report_index(m, a, d, i);
        offset += i * b.strides[d];
      }
      f(l, offset);
    }
    return;
  }
  const bool along = a.form == AccessPlan::Form::contiguous;  // the lanes lie along the last dimension
  int64_t offset = 0;
  for (uint32_t d = 0; d + along < b.rank; ++d) {
    const int64_t i = index_at(m, a.indices[d]);
    if (i < 0 || i >= b.extents[d]) report_index(m, a, d, i);
    offset += i * b.strides[d];
  }
  if (along) {
    const uint32_t last = b.rank - 1;
    const int64_t first = index_at(m, a.indices[last]), extent = b.extents[last];
    if (first < -kMaxLanes || first > extent) report_index(m, a, last, first);
    offset += first;
    const bool inside = first >= 0 && first + a.lanes <= extent;
    for (uint32_t l = 0; l < a.lanes && !inside; ++l) {
      if (mask && !mask[l]) continue;
      const int64_t i = first + l;
      const bool next_row = b.row_major && first >= 0 && first < extent && offset + l < b.elements;
      if (!(i >= 0 && i < extent) && !next_row) report_index(m, a, last, i);
    }
  }
  offset *= b.lanes;
  if (!mask) {
    block(offset);
    return;
  }
  for (uint32_t l = 0; l < a.lanes; ++l)
    if (mask[l]) f(l, offset + l);
}

}  // namespace

void load_lanes(Machine& m, const AccessPlan& a, unsigned char* to) {
  const BufferState& b = m.buffers[a.buffer];
  const size_t size = b.scalar_bytes;
  auto written = [&](int64_t scalar) {
    if (b.stamps && b.stamps[scalar] != b.generation) report_unwritten(m, a, scalar);
  };
  if (a.masked) std::memset(to, 0, size * a.lanes);
  each_lane(
      m, a, b,
      [&](int64_t scalar) {
        if (b.stamps)
          for (uint32_t l = 0; l < a.lanes; ++l) written(scalar + l);
        std::memcpy(to, b.data + scalar * static_cast<int64_t>(size), size * a.lanes);
      },
      [&](uint32_t l, int64_t scalar) {
        written(scalar);
        std::memcpy(to + l * size, b.data + scalar * static_cast<int64_t>(size), size);
      });
}

void store_lanes(Machine& m, const AccessPlan& a, const unsigned char* from) {
  const BufferState& b = m.buffers[a.buffer];
  const size_t size = b.scalar_bytes;
  each_lane(
      m, a, b,
      [&](int64_t scalar) {
        if (b.stamps) std::fill_n(b.stamps + scalar, a.lanes, b.generation);
        std::memcpy(b.data + scalar * static_cast<int64_t>(size), from, size * a.lanes);
      },
      [&](uint32_t l, int64_t scalar) {
        if (b.stamps) b.stamps[scalar] = b.generation;
        std::memcpy(b.data + scalar * static_cast<int64_t>(size), from + l * size, size);
      });
}

void begin_generation(BufferState& b) {
  if (!b.stamps) return;
  if (++b.generation == 0) {  // after 2^32 allocs
    std::fill_n(b.stamps, b.elements * b.lanes, 0u);
    b.generation = 1;
  }
}

void report_index(const Machine& m, const AccessPlan& a, size_t dimension, int64_t index) {
  throw_internal("kernel " + m.code->kernel + ", " + a.what + ": index " + std::to_string(index) + " in dimension " +
                 std::to_string(dimension) + ", whose extent is " +
                 std::to_string(m.buffers[a.buffer].extents[dimension]));
}

void report_unwritten(const Machine& m, const AccessPlan& a, int64_t scalar) {
  throw_internal("kernel " + m.code->kernel + ", " + a.what + ": element " +
                 std::to_string(scalar / m.buffers[a.buffer].lanes) + " was never written");
}

}  // namespace cuvil::kernel
