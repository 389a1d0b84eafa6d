// How contraction schedules walk their output channels: in panels of vectors, the next panel prefetched.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/schedules/words.h"

namespace cuvil::schedules {

/// Output channels in panels of `vectors` vectors; the last panel may have fewer vectors, its last vector fewer lanes.
struct Panels {
  int64_t channels = 0;
  int vectors = 1, lanes = 1;

  int64_t width() const { return int64_t{vectors} * lanes; }
  int64_t count() const { return (channels + width() - 1) / width(); }
};

/// A panel while its code is emitted.
struct Panel {
  Expr index;
  Expr base;  ///< first channel, in vectors
  int vectors = 1, lanes = 1;
  Expr last_mask;  ///< null: the last vector is full

  Expr channel(int v) const { return (base + Expr(v)) * Expr(lanes); }
  Expr mask(int v) const { return v + 1 == vectors ? last_mask : Expr(); }
};

/// Emits `body` for panel `index`: twice, under a branch, if there are full panels and another one.
void emit_panel(Builder& b, const Panels& panels, const Expr& index, const std::function<void(const Panel&)>& body);

/// What a panel's accumulators start from: input 2 of the node, one value per channel, or nothing if it has none.
std::vector<Expr> bias_of(LowerContext& c, const Panel& panel);

/// The next weight panel goes to L2 while this one is used, some cache lines per step of the contraction, others at
/// each of the `visits` to the panel.
struct PanelPrefetch {
  int lines_per_step = 0;  ///< 0: none
  int64_t visits = 1;      ///< after which the panel is there

  PanelPrefetch() = default;
  /// Panels of `width` floats per step, `weight_bytes` all together, each visited `most_visits` times (nullopt:
  /// unknown).
  PanelPrefetch(int64_t panels, int64_t weight_bytes, int64_t width, std::optional<int64_t> most_visits);
  /// Offset in the panel's row of weights of line i to fetch at a visit.
  Expr at(const Expr& visit, int i) const;
};

}  // namespace cuvil::schedules
