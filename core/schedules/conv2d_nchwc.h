// Direct convolution in NCHWc: geometry and tile emission, shared with the transposed form.
#pragma once

#include "core/schedules/conv_problem.h"
#include "core/schedules/panels.h"
#include "core/schedules/schedule.h"
#include "core/schedules/tile.h"

namespace cuvil::schedules {

/// How a convolution is cut: register tile, weight panels, tasks.
struct ConvPlan {
  ConvProblem p;
  int lanes = 1;  ///< channels per block
  int tile_h = 1, tile_w = 1;
  Panels panels;           ///< of all groups: none spans two
  ir::Layout weights;      ///< [oc panel][ic block][kh][kw][ic lane][oc lane]
  int64_t row_chunks = 1;  ///< 0: unknown, see part_of()
  int64_t panel_groups = 1;

  int64_t weight_bytes() const { return p.gic * p.kh * p.kw * panels.width() * panels.count() * 4; }
};

ConvPlan plan_conv(const ConvProblem& problem, const TargetInfo& target);

}  // namespace cuvil::schedules
