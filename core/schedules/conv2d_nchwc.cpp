#include "core/schedules/conv2d_nchwc.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/schedules/list.h"

namespace cuvil::schedules {

using kernel::Buffer;
using kernel::Builder;
using kernel::Expr;
using kernel::LoopKind;
using ops::Coords;
using ops::LowerContext;

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
    h_ = c_.dim(p_.h), width_ = c_.dim(p_.w), ow_ = c_.dim(p_.ow);
    const int64_t groups = plan_.panel_groups;
    const Expr rows = kernel::ceildiv(oh, Expr(plan_.tile_h));
    const Expr chunks = plan_.row_chunks ? Expr(plan_.row_chunks) : kernel::ceildiv(oh, Expr(kSymbolicRows));
    b_.phase(n * chunks * Expr(groups), [&](Expr task) {
      const Expr group = b_.let("group", task % Expr(groups));
      const Expr chunk = b_.let("chunk", kernel::floordiv(task, Expr(groups)) % chunks);
      n_ = b_.let("n", kernel::floordiv(task, Expr(groups) * chunks));
      if (plan_.row_chunks) {
        row_begin_ = b_.let("row_begin", part_begin(chunk, plan_.row_chunks, rows));
        row_end_ = b_.let("row_end", part_begin(chunk + Expr(1), plan_.row_chunks, rows));
      } else {
        row_begin_ = b_.let("row_begin", chunk * Expr(kSymbolicRows));
        row_end_ = b_.let("row_end", kernel::min(rows, row_begin_ + Expr(kSymbolicRows)));
      }
      const Expr first = b_.let("panel_begin", part_begin(group, groups, Expr(plan_.panels)));
      const Expr last = b_.let("panel_end", part_begin(group + Expr(1), groups, Expr(plan_.panels)));
      b_.loop("panel", first, last, LoopKind::serial, [&](Expr panel) { emit_panel(panel); });
    });
  }

 private:
  void emit_panel(Expr panel) {
    panel_ = panel;
    const int64_t full = p_.oc / (int64_t{plan_.vectors} * plan_.lanes);
    const int64_t rest = p_.oc - full * plan_.vectors * plan_.lanes;
    const int rest_vectors = static_cast<int>((rest + plan_.lanes - 1) / plan_.lanes);
    const int rest_lanes = static_cast<int>(p_.oc % plan_.lanes);
    if (rest == 0) return emit_rows(plan_.vectors, 0);
    if (full == 0) return emit_rows(rest_vectors, rest_lanes);
    b_.branch(panel < Expr(full), [&] { emit_rows(plan_.vectors, 0); }, [&] { emit_rows(rest_vectors, rest_lanes); });
  }

  /// `last_lanes`: valid lanes of the last vector; 0 = all.
  void emit_rows(int vectors, int last_lanes) {
    vectors_ = vectors;
    last_mask_ = last_lanes ? kernel::lane_mask(Expr(0), Expr(last_lanes), plan_.lanes) : Expr();
    start_.clear();
    if (p_.bias)
      for (int v = 0; v < vectors; ++v)
        start_.push_back(b_.let("bias", c_.load(2, Coords{{channel(v)}, 0, plan_.lanes, mask(v)})));
    ic_block_ = p_.groups == 1
                    ? Expr(0)
                    : b_.let("group_block",
                             kernel::floordiv(panel_ * Expr(int64_t{plan_.vectors} * plan_.lanes), Expr(p_.goc)) *
                                 Expr(p_.gic / plan_.lanes));
    plan_prefetch();
    b_.loop("row", row_begin_, row_end_, LoopKind::serial, [&](Expr row) {
      const Expr oh = b_.let("oh", row * Expr(plan_.tile_h));
      tile_index_ = Expr(0);
      row_ = row;
      const int64_t rest = plan_.tile_h > 1 ? p_.oh.value() % plan_.tile_h : 0;
      if (rest == 0) return emit_columns(oh, plan_.tile_h);
      b_.branch(
          row < Expr(p_.oh.value() / plan_.tile_h), [&] { emit_columns(oh, plan_.tile_h); },
          [&] { emit_columns(oh, static_cast<int>(rest)); });
    });
  }

  void emit_columns(const Expr& oh, int tile_h) {
    if (p_.ow.is_const() && p_.w.is_const()) {
      const std::vector<ColumnRun> runs = column_runs(p_, p_.w.value(), p_.ow.value(), plan_.tile_w);
      for (const ColumnRun& run : runs) {
        if (run.count == 1) {
          emit_tile(oh, Expr(run.begin), tile_h, run.width, &run.taps);
          continue;
        }
        b_.loop("column", Expr(run.count), [&](Expr i) {
          emit_tile(oh, b_.let("ow", Expr(run.begin) + i * Expr(run.width)), tile_h, run.width, &run.taps);
        });
      }
      return;
    }
    // Unknown width: border pixels one by one with clipped taps, between them tiles and a ladder of smaller ones.
    auto [first, end] = interior(width_, ow_, p_.sw, p_.dw, p_.pl, p_.kw);
    first = b_.let("first", first);
    end = b_.let("end", end);
    const std::vector<std::vector<bool>> all;
    const bool border = !never_clipped(p_.w, p_.ow, p_.sw, p_.dw, p_.pl, p_.kw);
    cover(b_, first, end, plan_.tile_w, [&](const Expr& ow, int width) { emit_tile(oh, ow, tile_h, width, &all); });
    if (!border) return;
    // One loop over both borders keeps one copy of the code.
    b_.loop("border", first + (ow_ - end), [&](Expr i) {
      const Expr ow = b_.let("ow", kernel::select(i < first, i, i - first + end));
      emit_tile(oh, ow, tile_h, 1, nullptr);
    });
  }

  /// One register tile. taps: see ColumnRun; null: taps of the single pixel are clipped at run time.
  void emit_tile(const Expr& oh, const Expr& ow, int tile_h, int tile_w, const std::vector<std::vector<bool>>* taps) {
    RegisterTile acc(b_, tile_h, tile_w, vectors_, plan_.lanes);
    acc.fill(start_);
    const int64_t blocks = (p_.gic + plan_.lanes - 1) / plan_.lanes;
    const int copies = taps && !taps->empty() ? static_cast<int>(p_.kw) : 1;
    const int most = std::clamp(160 / (tile_h * tile_w * vectors_ * copies), 1, 4);
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
    const Expr n = n_;
    acc.finish(c_,
               [&](Expr y, Expr x, int v) { return Coords{{n, channel(v), oh + y, ow + x}, 1, plan_.lanes, mask(v)}; });
  }

  /// A tile of several rows: all of them where all are inside the image, else each that is.
  void emit_clipped_rows(RegisterTile& acc, const Expr& oh, const Expr& ow, const Expr& kh,
                         const std::vector<std::vector<bool>>* taps) {
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
                 const std::vector<std::vector<bool>>* taps) {
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
            for (int v = 0; v < vectors_; ++v)
              weights.push_back(
                  b_.let("w", kernel::load(w_, {panel_, block_, kh, kw, lane, Expr(v * plan_.lanes)}, plan_.lanes)));
            for (int i = 0; i < lines_per_step_; ++i)
              b_.prefetch(w_, {panel_ + Expr(1), block_, kh, kw, lane, prefetch_at() + Expr(16 * i)}, 2);
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

  /// The next weight panel goes to L2 while this one is used, one cache line per step and tile row.
  void plan_prefetch() {
    const int64_t panel_bytes = p_.gic * p_.kh * p_.kw * plan_.vectors * plan_.lanes * 4;
    const int64_t lines = std::max<int64_t>(1, int64_t{plan_.vectors} * plan_.lanes / 16);
    lines_per_step_ = 0;
    if (plan_.panels < 2 || panel_bytes * plan_.panels < (128 << 10)) return;
    lines_per_step_ = 1;
    if (p_.oh.is_const() && plan_.row_chunks) {
      const int64_t rows = std::max<int64_t>(1, (p_.oh.value() + plan_.tile_h - 1) / plan_.tile_h / plan_.row_chunks);
      lines_per_step_ = static_cast<int>((lines + rows - 1) / rows);
    }
    prefetch_steps_ = (lines + lines_per_step_ - 1) / lines_per_step_;
  }
  Expr prefetch_at() const {
    if (prefetch_steps_ == 1) return Expr(0);
    return kernel::min(row_ - row_begin_, Expr(prefetch_steps_ - 1)) * Expr(16 * lines_per_step_);
  }

  Expr input_row(const Expr& oh, int y, const Expr& kh) const {
    return (oh + Expr(y)) * Expr(p_.sh) + kh * Expr(p_.dh) - Expr(p_.pt);
  }
  Expr channel(int v) const { return (panel_ * Expr(plan_.vectors) + Expr(v)) * Expr(plan_.lanes); }
  Expr mask(int v) const { return v + 1 == vectors_ ? last_mask_ : Expr(); }

  LowerContext& c_;
  Builder& b_;
  const ConvPlan& plan_;
  const ConvProblem& p_;
  Buffer x_, w_;
  bool clipped_h_;
  Expr h_, width_, ow_, n_, row_begin_, row_end_, row_, panel_, ic_block_, block_, lane_end_, last_mask_, tile_index_;
  std::vector<Expr> start_;
  int vectors_ = 1, unroll_ = 1, lines_per_step_ = 0;
  int64_t prefetch_steps_ = 1;
};

std::optional<std::string> refuse(const ops::Group& group, const TargetInfo& target) {
  if (!group.anchor || group.anchor->op != "Conv2D") return "not a convolution";
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
  ConvPlan plan;
  CUVIL_CHECK(!read_conv(group, plan.p), "a convolution that was refused");
  plan = plan_conv(ConvProblem(plan.p), target);
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
