#include <algorithm>

#include "core/schedules/conv2d_nchwc.h"

namespace cuvil::schedules {

namespace {
void choose_tasks(ConvPlan& plan, const TargetInfo& target) {
  const ConvProblem& p = plan.p;
  const int64_t panels = plan.panels.count();
  const int64_t weight_bytes = plan.weight_bytes(), panel_bytes = weight_bytes / panels;
  const int64_t wanted = wanted_tasks(target);
  if (!p.oh.is_const() || !p.ow.is_const() || !p.h.is_const() || !p.w.is_const()) {
    plan.row_chunks = 0;
    plan.panel_groups = weight_bytes > target.l2_bytes / 4 ? std::min<int64_t>(panels, 4) : 1;
    return;
  }
  const int64_t rows = (p.oh.value() + plan.tile_h - 1) / plan.tile_h;
  const int64_t input_bytes = p.ic * p.h.value() * p.w.value() * 4;
  // The rows of input under a chunk are read once per panel: they and a panel should stay in L2.
  const int64_t room = std::max<int64_t>(target.l2_bytes / 2 - panel_bytes, target.l2_bytes / 4);
  plan.row_chunks = std::clamp<int64_t>((input_bytes + room - 1) / room, 1, rows);
  const int64_t batch = p.n.as_const().value_or(1);
  if (batch * plan.row_chunks >= wanted) return;
  const int64_t missing = (wanted + batch * plan.row_chunks - 1) / (batch * plan.row_chunks);
  // Threads share either the weights or the image: split what is bigger.
  if (weight_bytes > input_bytes || rows < wanted) {
    plan.panel_groups = std::min(panels, missing);
    // Too few panels: rows as well.
    const int64_t still = (missing + plan.panel_groups - 1) / plan.panel_groups;
    plan.row_chunks = std::min(rows, plan.row_chunks * still);
  } else {
    plan.row_chunks = std::min(rows, plan.row_chunks * missing);
  }
}
}  // namespace

ConvPlan plan_conv(const ConvProblem& p, const TargetInfo& target) {
  ConvPlan plan;
  plan.p = p;
  plan.lanes = target.lanes_f32();
  TileDemand demand;
  demand.vectors = (p.goc + plan.lanes - 1) / plan.lanes;
  demand.whole_panels = p.groups > 1;
  const bool fixed = p.oh.is_const() && p.ow.is_const();
  demand.positions = p.ow.as_const().value_or(0);
  demand.lines = fixed ? p.oh.value() : 1;
  TileChoice choice = choose_tile(demand, target);
  plan.tile_w = choice.positions;
  if (fixed && p.ow.value() > 0) {
    // Narrow images: whole rows, several at a time.
    TileDemand flat = demand;
    flat.positions = p.oh.value() * p.ow.value();
    flat.lines = 1;
    flat.multiple = p.ow.value();
    const TileChoice rows = choose_tile(flat, target);
    if (rows.cycles > 0 && rows.cycles < choice.cycles * 0.99) {
      choice = rows;
      plan.tile_w = static_cast<int>(p.ow.value());
      plan.tile_h = choice.positions / plan.tile_w;
    } else {
      // Equal tiles instead of full ones and a small rest.
      const int64_t tiles = (p.ow.value() + choice.positions - 1) / choice.positions;
      plan.tile_w = static_cast<int>((p.ow.value() + tiles - 1) / tiles);
    }
  }
  plan.panels = {p.oc, choice.vectors, plan.lanes};
  plan.weights.blocks = {{1, plan.lanes}, {0, static_cast<int>(plan.panels.width())}};
  choose_tasks(plan, target);
  return plan;
}

}  // namespace cuvil::schedules
