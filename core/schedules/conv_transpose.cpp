#include "core/schedules/conv_transpose.h"

namespace cuvil::schedules {

using kernel::Expr;

std::vector<ColumnPhase> column_phases(const ConvProblem& p) {
  std::vector<ColumnPhase> phases;
  for (int64_t begin = 0; begin < p.sw; ++begin) {
    ColumnPhase phase;
    phase.begin = begin;
    for (int64_t kw = 0; kw < p.kw; ++kw) {
      const int64_t scaled = begin + p.pl - kw * p.dw;
      if (scaled % p.sw == 0) phase.taps.push_back({kw, scaled / p.sw});
    }
    phases.push_back(std::move(phase));
  }
  return phases;
}

std::pair<Expr, Expr> met_row(const ConvProblem& p, const Expr& oh, const Expr& kh, const Expr& height) {
  const Expr scaled = oh + Expr(p.pt) - kh * Expr(p.dh);
  const Expr row = kernel::floordiv(scaled, Expr(p.sh));
  Expr met = (row >= Expr(0)) & (row < height);
  if (p.sh > 1) met = met & (scaled % Expr(p.sh) == Expr(0));
  return {row, met};
}

}  // namespace cuvil::schedules
