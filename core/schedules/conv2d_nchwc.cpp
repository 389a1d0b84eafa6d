#include "core/schedules/conv2d_nchwc.h"

#include <algorithm>
#include <tuple>

#include "core/base/error.h"
#include "core/schedules/list.h"

namespace cuvil::schedules {

namespace {

/// Emits one kernel. The nest, from outside: task (image, row chunk, panel group), weight panel, row tile, column tile;
/// inside a tile everything is summed in registers over (ic block, kh, kw, ic lane).
class Conv2dNchwc {
 public:
  Conv2dNchwc(LowerContext& c, const ConvPlan& plan)
      : c_(c),
        b_(c.b()),
        plan_(plan),
        p_(plan.p),
        x_(c.in_memory(0)->buffer()),
        w_(c.in_memory(1)->buffer()),
        clipped_h_(!never_clipped(p_.h, p_.oh, p_.sh, p_.dh, p_.pt, p_.kh)) {}

  void emit() {
    const Expr n = c_.dim(p_.n), oh = c_.dim(p_.oh);
    h_ = c_.dim(p_.h), width_ = c_.dim(p_.w);
    const Expr groups(plan_.panel_groups), panels(plan_.panels.count());
    const Expr rows = kernel::ceildiv(oh, Expr(plan_.tile_h));
    const Expr chunks = part_count(plan_.row_chunks, rows);
    b_.phase(n * chunks * groups, [&](Expr task) {
      const Expr group = b_.let("group", task % groups);
      const Expr chunk = b_.let("chunk", kernel::floordiv(task, groups) % chunks);
      n_ = b_.let("n", kernel::floordiv(task, groups * chunks));
      std::tie(row_begin_, row_end_) = part_of(b_, "row", chunk, plan_.row_chunks, rows);
      const auto [first, last] = part_of(b_, "panel", group, plan_.panel_groups, panels);
      b_.loop("panel", first, last, LoopKind::serial,
              [&](Expr index) { emit_panel(b_, plan_.panels, index, [&](const Panel& panel) { emit_rows(panel); }); });
    });
  }

 private:
  void emit_rows(const Panel& panel) {
    panel_ = panel;
    start_ = bias_of(c_, panel);
    ic_block_ = p_.groups == 1
                    ? Expr(0)
                    : b_.let("group_block", kernel::floordiv(panel.index * Expr(plan_.panels.width()), Expr(p_.goc)) *
                                                Expr(p_.gic / plan_.lanes));
    plan_prefetch();
    b_.loop("row", row_begin_, row_end_, LoopKind::serial, [&](Expr row) {
      const Expr oh = b_.let("oh", row * Expr(plan_.tile_h));
      row_ = row;
      const int64_t rest = plan_.tile_h > 1 ? p_.oh.value() % plan_.tile_h : 0;
      if (rest == 0) return emit_columns(oh, plan_.tile_h);
      b_.branch(
          row < Expr(p_.oh.value() / plan_.tile_h), [&] { emit_columns(oh, plan_.tile_h); },
          [&] { emit_columns(oh, static_cast<int>(rest)); });
    });
  }

  void emit_columns(const Expr& oh, int tile_h) {
    cover_row(c_, p_, plan_.tile_w,
              [&](const Expr& ow, int width, const Taps* taps) { emit_tile(oh, ow, tile_h, width, taps); });
  }

  /// One register tile. taps: null: those of the single pixel are clipped at run time.
  void emit_tile(const Expr& oh, const Expr& ow, int tile_h, int tile_w, const Taps* taps) {
    RegisterTile acc(b_, tile_h, tile_w, panel_.vectors, plan_.lanes);
    acc.fill(start_);
    const int64_t blocks = (p_.gic + plan_.lanes - 1) / plan_.lanes;
    const int copies = taps && !taps->empty() ? static_cast<int>(p_.kw) : 1;
    const int most = std::clamp(160 / (tile_h * tile_w * panel_.vectors * copies), 1, 4);
    unroll_ = unroll_factor(p_.gic % plan_.lanes == 0 ? plan_.lanes : p_.gic, most);
    b_.loop("ic", Expr(blocks), [&](Expr block) {
      block_ = block;
      lane_end_ = p_.gic % plan_.lanes == 0
                      ? Expr(plan_.lanes)
                      : b_.let("lanes", kernel::min(Expr(plan_.lanes), Expr(p_.gic) - block * Expr(plan_.lanes)));
      std::vector<bool> every(static_cast<size_t>(tile_h), true);
      if (p_.kh == 1 && !clipped_h_) return emit_taps(acc, oh, ow, Expr(0), every, taps);
      Expr begin(0), end(p_.kh);
      if (tile_h == 1 && clipped_h_) {
        std::tie(begin, end) = tap_range(oh, p_.sh, p_.dh, p_.pt, p_.kh, h_);
        begin = b_.let("kh_begin", begin), end = b_.let("kh_end", end);
      }
      b_.loop("kh", begin, end, LoopKind::serial, [&](Expr kh) {
        if (tile_h == 1 || !clipped_h_) return emit_taps(acc, oh, ow, kh, every, taps);
        emit_clipped_rows(acc, oh, ow, kh, taps);
      });
    });
    acc.finish(c_, [&](Expr y, Expr x, int v) {
      return Coords{{n_, panel_.channel(v), oh + y, ow + x}, 1, plan_.lanes, panel_.mask(v)};
    });
  }

  /// A tile of several rows: all of them where all are inside the image, else each that is.
  void emit_clipped_rows(RegisterTile& acc, const Expr& oh, const Expr& ow, const Expr& kh, const Taps* taps) {
    std::vector<Expr> inside;
    Expr together;
    for (int y = 0; y < acc.height(); ++y) {
      const Expr ih = input_row(oh, y, kh);
      inside.push_back(b_.let("inside", (ih >= Expr(0)) & (ih < h_)));
      together = y ? together & inside.back() : inside.back();
    }
    b_.branch(
        together, [&] { emit_taps(acc, oh, ow, kh, std::vector<bool>(inside.size(), true), taps); },
        [&] {
          for (size_t y = 0; y < inside.size(); ++y) {
            std::vector<bool> rows(inside.size(), false);
            rows[y] = true;
            b_.branch(inside[y], [&] { emit_taps(acc, oh, ow, kh, rows, taps); });
          }
        });
  }

  void emit_taps(RegisterTile& acc, const Expr& oh, const Expr& ow, const Expr& kh, const std::vector<bool>& rows,
                 const Taps* taps) {
    std::vector<Expr> ih;
    for (int y = 0; y < acc.height(); ++y)
      ih.push_back(rows[static_cast<size_t>(y)] ? b_.let("ih", input_row(oh, y, kh)) : Expr());
    const std::vector<bool> all(static_cast<size_t>(acc.width()), true);
    if (taps && !taps->empty()) {
      for (int64_t kw = 0; kw < p_.kw; ++kw) emit_lanes(acc, ih, ow, kh, Expr(kw), (*taps)[static_cast<size_t>(kw)]);
      return;
    }
    Expr begin(0), end(p_.kw);
    if (!taps) {
      std::tie(begin, end) = tap_range(ow, p_.sw, p_.dw, p_.pl, p_.kw, width_);
      begin = b_.let("kw_begin", begin), end = b_.let("kw_end", end);
    } else if (p_.kw == 1) {
      return emit_lanes(acc, ih, ow, kh, Expr(0), all);
    }
    b_.loop("kw", begin, end, LoopKind::serial, [&](Expr kw) { emit_lanes(acc, ih, ow, kh, kw, all); });
  }

  void emit_lanes(RegisterTile& acc, const std::vector<Expr>& ih, const Expr& ow, const Expr& kh, const Expr& kw,
                  const std::vector<bool>& columns) {
    if (std::find(columns.begin(), columns.end(), true) == columns.end()) return;
    const Expr iw = b_.let("iw", ow * Expr(p_.sw) + kw * Expr(p_.dw) - Expr(p_.pl));
    const Expr block = ic_block_ + block_;
    b_.loop(
        "lane", Expr(0), lane_end_, LoopKind::serial,
        [&](Expr lane0) {
          for (int u = 0; u < unroll_; ++u) {
            const Expr lane = lane0 + Expr(u);
            std::vector<Expr> weights;
            for (int v = 0; v < panel_.vectors; ++v)
              weights.push_back(b_.let(
                  "w", kernel::load(w_, {panel_.index, block_, kh, kw, lane, Expr(v * plan_.lanes)}, plan_.lanes)));
            for (int i = 0; i < prefetch_.lines_per_step; ++i)
              b_.prefetch(w_, {panel_.index + Expr(1), block_, kh, kw, lane, prefetch_.at(row_ - row_begin_, i)}, 2);
            prefetch_input(acc, ih, iw, lane);
            for (int y = 0; y < acc.height(); ++y)
              for (int x = 0; x < acc.width(); ++x) {
                if (!ih[static_cast<size_t>(y)] || !columns[static_cast<size_t>(x)]) continue;
                acc.multiply_add(y, x,
                                 kernel::load(x_, {n_, block, ih[static_cast<size_t>(y)], iw + Expr(x * p_.sw), lane}),
                                 weights);
              }
          }
        },
        unroll_);
  }

  /// 1x1: every input vector is used by one tile only, so the next tile's come to L1 meanwhile, one per step.
  void prefetch_input(const RegisterTile& acc, const std::vector<Expr>& ih, const Expr& iw, const Expr& lane) {
    if (p_.kh != 1 || p_.kw != 1 || !ih[0]) return;
    const int64_t ahead = int64_t{acc.height()} * acc.width();
    b_.prefetch(x_, {n_, ic_block_ + block_, ih[0], iw + (Expr(ahead) + lane) * Expr(p_.sw), Expr(0)}, 1);
  }

  void plan_prefetch() {
    std::optional<int64_t> rows;  // of tiles, per task
    if (p_.oh.is_const() && plan_.row_chunks)
      rows = (p_.oh.value() + plan_.tile_h - 1) / plan_.tile_h / plan_.row_chunks;
    prefetch_ = {plan_.panels.count(), plan_.weight_bytes(), plan_.panels.width(), rows};
  }

  Expr input_row(const Expr& oh, int y, const Expr& kh) const {
    return (oh + Expr(y)) * Expr(p_.sh) + kh * Expr(p_.dh) - Expr(p_.pt);
  }

  LowerContext& c_;
  Builder& b_;
  const ConvPlan& plan_;
  const ConvProblem& p_;
  Buffer x_, w_;
  bool clipped_h_;
  Expr h_, width_, n_, row_begin_, row_end_, row_, ic_block_, block_, lane_end_;
  Panel panel_;
  PanelPrefetch prefetch_;
  std::vector<Expr> start_;
  int unroll_ = 1;
};

std::optional<std::string> refuse(const ops::Group& group, const TargetInfo& target) {
  ConvProblem p;
  if (auto r = read_conv(group, p)) return r;
  if (auto r = refuse_images(group, target)) return r;
  const int lanes = target.lanes_f32();
  if (p.groups > 1 && (p.gic % lanes != 0 || p.goc % lanes != 0))
    return "groups of " + std::to_string(p.gic) + " to " + std::to_string(p.goc) +
           " channels are not whole vectors of " + std::to_string(lanes);
  return refuse_weight(group, 1, plan_conv(p, target).weights);
}

std::vector<Prepack> prepack(const ops::Group& group, const TargetInfo& target) {
  ConvProblem p;
  if (read_conv(group, p)) return {};
  return {{1, plan_conv(p, target).weights}};
}

kernel::Kernel build(const ops::Group& group, const TargetInfo& target, std::string kernel_name) {
  ConvProblem p;
  CUVIL_CHECK(!read_conv(group, p), "a convolution that was refused");
  const ConvPlan plan = plan_conv(p, target);
  LowerContext c(group, target, std::move(kernel_name));
  Conv2dNchwc(c, plan).emit();
  return c.finish();
}

}  // namespace

const Schedule kConv2dNchwc = {
    "conv2d_nchwc",
    "Direct convolution of channel blocks: tiles of output pixels x output channels stay in registers over the whole "
    "sum; weights in panels of one to five vectors.",
    refuse, prepack, build};

}  // namespace cuvil::schedules
