#include "core/abi/place.h"

#include <gtest/gtest.h>

#include <vector>

namespace cuvil {
namespace {

Placement run(const std::vector<PlaceItem>& items, size_t steps, std::vector<int64_t>& offsets) {
  std::vector<uint32_t> u32(place_work_u32(items.size()));
  std::vector<int64_t> i64(place_work_i64(items.size(), steps));
  offsets.assign(items.size(), -1);
  return place(items.data(), items.size(), steps, offsets.data(), u32.data(), i64.data());
}

TEST(Place, AChainNeedsItsTwoLargestNeighbours) {
  std::vector<int64_t> offsets;
  const Placement p = run({{640, 0, 1}, {1280, 1, 2}, {640, 2, 3}, {64, 3, 4}}, 5, offsets);
  EXPECT_EQ(p.lower_bound, 1920);
  EXPECT_EQ(p.arena_bytes, 1920);
}

TEST(Place, RandomItemsNeverOverlapAndStayNearTheBound) {
  uint32_t state = 5;
  const auto random = [&](uint32_t n) { return (state = state * 1664525 + 1013904223) / 65536 % n; };
  double worst = 1;
  for (int round = 0; round < 200; ++round) {
    const uint32_t n = 1 + random(60), steps = 1 + random(80);
    std::vector<PlaceItem> items(n);
    for (auto& item : items) {
      item.first = random(steps);
      item.last = std::min(steps - 1, item.first + random(6));
      item.bytes = random(10) == 0 ? 0 : random(100000);
    }
    std::vector<int64_t> offsets, again;
    const Placement p = run(items, steps, offsets);
    EXPECT_EQ(run(items, steps, again).arena_bytes, p.arena_bytes);
    EXPECT_EQ(offsets, again);
    for (uint32_t i = 0; i < n; ++i) {
      ASSERT_EQ(offsets[i] % CUVIL_ALIGNMENT, 0);
      ASSERT_LE(offsets[i] + items[i].bytes, p.arena_bytes);
      for (uint32_t j = 0; j < i; ++j) {
        if (items[i].last < items[j].first || items[j].last < items[i].first) continue;
        ASSERT_TRUE(items[i].bytes == 0 || items[j].bytes == 0 || offsets[i] + items[i].bytes <= offsets[j] ||
                    offsets[j] + items[j].bytes <= offsets[i]);
      }
    }
    ASSERT_GE(p.arena_bytes, p.lower_bound);
    if (p.lower_bound > 0) worst = std::max(worst, double(p.arena_bytes) / double(p.lower_bound));
  }
  EXPECT_LT(worst, 1.25);
}

TEST(Place, NothingToPlace) {
  std::vector<int64_t> offsets;
  EXPECT_EQ(run({}, 3, offsets).arena_bytes, 0);
  EXPECT_EQ(run({}, 0, offsets).lower_bound, 0);
}

}  // namespace
}  // namespace cuvil
