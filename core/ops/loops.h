// Loop nests for lowerings: tasks over outer axes, explicit vectors along an axis that lies contiguously, masks at the
// remainder. A lowering says what one vector of results is; the walk follows the output's layout.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/ops/lower.h"

namespace cuvil::ops {

/// Adds a phase whose tasks cover the index space `extents`, row-major; the body gets one index. Trailing axes of at
/// most `grain` points together run as serial loops inside a task.
void tasks_over(LowerContext& c, const Shape& extents, int64_t grain,
                const std::function<void(const std::vector<kernel::Expr>&)>& body);

/// begin, begin + lanes, ... while < end; the last step may be partial and then gets a mask (else a null one). `body`
/// is built once if the extent is a known multiple of lanes, else twice.
void vector_loop(kernel::Builder& b, const std::string& name, const kernel::Expr& begin, const kernel::Expr& end,
                 int lanes, const std::function<void(kernel::Expr base, kernel::Expr mask)>& body, bool exact = false);

/// The smallest power of two that holds `extent`, at most `lanes`: no wider vectors than a short axis needs.
int fitting_lanes(const Dim& extent, int lanes);

/// A value that loops change: an accumulator.
class Register {
 public:
  Register(kernel::Builder& b, std::string name, const kernel::Expr& start);
  kernel::Expr get() const;
  void set(kernel::Expr value) { b_.store(buffer_, {kernel::Expr(0)}, std::move(value)); }

 private:
  kernel::Builder& b_;
  kernel::Buffer buffer_;
};

struct Walk {
  int64_t grain = 4096;  ///< elements of a task: fewer for expensive ones
  int max_lanes = 64;    ///< 1: scalars
};
/// Adds a phase that visits every element of a tensor of type `space` once, in its physical order, in vectors along the
/// axis that is contiguous in it: the last axis, or a blocked one. The body gets logical coordinates.
void for_each(LowerContext& c, const ir::Type& space, const Walk& walk, const std::function<void(const Coords&)>& body);

/// Loops of a reduction of a tensor over axes. Vectors run along the last axis if it is reduced (partial results are
/// combined at the end), else across the kept axis that lies contiguously.
class ReduceNest {
 public:
  /// `axes` sorted. `along`: allows vectors along the reduced axis.
  ReduceNest(LowerContext& c, ir::Type input, std::vector<int> axes, bool along = true);

  /// A phase over the kept positions; reduced axes have index 0 in the coordinates.
  void for_each_kept(const std::function<void(const Coords&)>& body, int64_t grain = 64);
  /// Loops over the reduced axes at one kept position, inside for_each_kept.
  void over(const Coords& kept, const std::function<void(const Coords&)>& body);
  /// start `op` value(first) `op` value(second) ... with add, mul, min, max, bit_and or bit_or; `start` is a scalar and
  /// neutral for `op`. The result has the lanes of `kept`.
  kernel::Expr fold(const Coords& kept, kernel::Op op, const kernel::Expr& start,
                    const std::function<kernel::Expr(const Coords&)>& value);
  /// Number of reduced elements.
  Dim count() const;
  bool along() const { return along_; }

 private:
  /// Steps that a float sum takes in one accumulator before it is added to the total (blocked summation, Higham,
  /// Accuracy and Stability of Numerical Algorithms, 4.2).
  static constexpr int64_t kRun = 256;
  /// Does something before and after the run it is given.
  using Wrap = std::function<void(const std::function<void()>& run)>;
  /// over(), with `around_run`, unless null, around each run of at most kRun steps along the last axis.
  void walk(const Coords& kept, const std::function<void(const Coords&)>& body, const Wrap& around_run);

  LowerContext& c_;
  ir::Type input_;
  std::vector<int> axes_;
  int vector_axis_ = -1;  ///< reduced, if along_
  int lanes_ = 1;
  bool along_ = false;
};

}  // namespace cuvil::ops
