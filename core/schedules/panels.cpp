#include "core/schedules/panels.h"

#include <algorithm>

namespace cuvil::schedules {

namespace {
constexpr int64_t kLineFloats = 16;
constexpr int64_t kFewWeightBytes = 128 << 10;  ///< stay in L2 by themselves
}  // namespace

void emit_panel(Builder& b, const Panels& panels, const Expr& index, const std::function<void(const Panel&)>& body) {
  const int lanes = panels.lanes;
  const Expr base = index * Expr(panels.vectors);
  const int64_t full = panels.channels / panels.width(), rest = panels.channels % panels.width();
  const auto whole = [&] { body(Panel{index, base, panels.vectors, lanes, {}}); };
  const auto last = [&] {
    const int64_t last_lanes = rest % lanes;
    body(Panel{index, base, static_cast<int>((rest + lanes - 1) / lanes), lanes,
               last_lanes ? kernel::lane_mask(Expr(0), Expr(last_lanes), lanes) : Expr()});
  };
  if (rest == 0) return whole();
  if (full == 0) return last();
  b.branch(index < Expr(full), whole, last);
}

std::vector<Expr> bias_of(LowerContext& c, const Panel& panel) {
  std::vector<Expr> start;
  if (!c.has_in(2)) return start;
  for (int v = 0; v < panel.vectors; ++v)
    start.push_back(c.b().let("bias", c.load(2, Coords{{panel.channel(v)}, 0, panel.lanes, panel.mask(v)})));
  return start;
}

PanelPrefetch::PanelPrefetch(int64_t panels, int64_t weight_bytes, int64_t width, std::optional<int64_t> most_visits) {
  if (panels < 2 || weight_bytes < kFewWeightBytes) return;
  const int64_t lines = std::max<int64_t>(1, width / kLineFloats);
  const int64_t known = std::max<int64_t>(1, most_visits.value_or(lines));
  lines_per_step = static_cast<int>((lines + known - 1) / known);
  visits = (lines + lines_per_step - 1) / lines_per_step;
}

Expr PanelPrefetch::at(const Expr& visit, int i) const {
  const Expr line(kLineFloats * i);
  if (visits == 1) return line;
  return kernel::min(visit, Expr(visits - 1)) * Expr(kLineFloats * lines_per_step) + line;
}

}  // namespace cuvil::schedules
