// A transposed convolution as a gather: which taps reach an output position.
#pragma once

#include <vector>

#include "core/schedules/conv_problem.h"

namespace cuvil::schedules {

/// Output columns begin, begin + stride, ... are reached by the same taps: column q of a phase reads input column
/// q + offset for each of them.
struct ColumnPhase {
  int64_t begin = 0;
  struct Tap {
    int64_t kw, offset;
  };
  std::vector<Tap> taps;
};
std::vector<ColumnPhase> column_phases(const ConvProblem& p);

/// Input row that tap kh meets at output row oh, and whether there is one: (row, condition).
std::pair<kernel::Expr, kernel::Expr> met_row(const ConvProblem& p, const kernel::Expr& oh, const kernel::Expr& kh,
                                              const kernel::Expr& height);

}  // namespace cuvil::schedules
