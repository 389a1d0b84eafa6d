// What the contraction schedules share: register tiles, their choice, and balanced splits.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/target_info.h"
#include "core/ops/lower.h"

namespace cuvil::schedules {

/// height x width x vectors accumulators in registers. `height` and `width` count output positions (pixels of an image
/// tile, rows of a matrix), `vectors` vectors of output channels.
class RegisterTile {
 public:
  RegisterTile(kernel::Builder& b, int height, int width, int vectors, int lanes);

  int height() const { return height_; }
  int width() const { return width_; }
  int vectors() const { return vectors_; }
  int lanes() const { return lanes_; }

  kernel::Expr get(int y, int x, int v) const;
  void set(int y, int x, int v, kernel::Expr value);
  /// tile[y, x, :] += a * b, a broadcast; `b` holds one vector per accumulator vector.
  void multiply_add(int y, int x, const kernel::Expr& a, const std::vector<kernel::Expr>& b);
  /// Every accumulator vector v becomes start[v]; zero if `start` is empty.
  void fill(const std::vector<kernel::Expr>& start);

  /// Hands every accumulator to the group's epilogue and store. A cheap epilogue runs straight from registers; an
  /// expensive one would be repeated once per accumulator, so the tile goes through scratch and a loop instead.
  using At = std::function<ops::Coords(kernel::Expr y, kernel::Expr x, int v)>;
  void finish(ops::LowerContext& c, const At& at) const;

 private:
  int64_t slot(int y, int x, int v) const { return (int64_t{y} * width_ + x) * vectors_ + v; }
  kernel::Builder& b_;
  int height_, width_, vectors_, lanes_;
  kernel::Buffer acc_;
};

/// Most output positions that fit registers beside `vectors` accumulator vectors each, their weights and a broadcast.
/// Chosen so that LLVM's allocator does not spill (docs/schedules.md lists the tried tiles).
int max_positions(int vectors, const TargetInfo& target);

/// What to cover: `lines` lines of `positions` output positions (0: unknown), `vectors` vectors of output channels.
struct TileDemand {
  int64_t positions = 0;
  int64_t lines = 1;
  int64_t vectors = 1;
  int most_positions = 64;    ///< bound on a tile's positions
  int64_t multiple = 1;       ///< a tile's positions are a multiple of this
  bool whole_panels = false;  ///< the vectors of a panel must divide `vectors`
};
struct TileChoice {
  int positions = 1;  ///< per tile
  int vectors = 1;    ///< per panel
  double cycles = 0;  ///< of one step of the contraction over everything, by a simple model
};
/// The tile with the fewest cycles, the remainders of both directions counted. cycles is 0 if no tile fits.
TileChoice choose_tile(const TileDemand& demand, const TargetInfo& target);

/// How work is dealt out to tasks: `parts` nearly equal parts of `extent`; parts of kSymbolicPart if `parts` is 0.
inline constexpr int64_t kSymbolicPart = 8;
kernel::Expr part_count(int64_t parts, const kernel::Expr& extent);
/// Part i: [first, second), as lets NAME_begin and NAME_end.
std::pair<kernel::Expr, kernel::Expr> part_of(kernel::Builder& b, const std::string& name, const kernel::Expr& i,
                                              int64_t parts, const kernel::Expr& extent);

/// Widths to cover any remainder below `width`: the largest power of two below it, ..., 2, 1.
std::vector<int> remainder_ladder(int width);
/// Covers [begin, end) by tiles of `width` and a rest: one narrower tile where the bounds are numbers, else the ladder.
void cover(kernel::Builder& b, const kernel::Expr& begin, const kernel::Expr& end, int width,
           const std::function<void(const kernel::Expr& at, int width)>& body);

/// Weight of the group's epilogue per element: about its arithmetic instructions.
int epilogue_cost(const ops::Group& group);

/// The number of tasks worth making: enough to balance the target's cores (at least two).
int64_t wanted_tasks(const TargetInfo& target);

/// Divisor of the contraction length to unroll by: at most `limit`, a power of two.
int unroll_factor(int64_t length, int limit);

}  // namespace cuvil::schedules
