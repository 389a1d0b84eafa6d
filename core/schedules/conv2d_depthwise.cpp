#include <algorithm>

#include "core/base/error.h"
#include "core/schedules/conv_problem.h"
#include "core/schedules/list.h"
#include "core/schedules/tile.h"

namespace cuvil::schedules {

namespace {

constexpr int64_t kRowsPerTask = 8;  ///< at most: keeps the rows above and below in L1 or L2

ir::Layout weight_layout(const TargetInfo& target) {
  ir::Layout layout;  // [channel block][1][kh][kw][lane]
  layout.blocks = {{0, target.lanes_f32()}};
  return layout;
}

/// Output pixels per tile: accumulators beside the taps of one kernel row.
int tile_width(const ConvProblem& p, const TargetInfo& target) {
  const int64_t free = target.vector_registers - std::min<int64_t>(p.kw, target.vector_registers / 3) - 2;
  int64_t width = std::max<int64_t>(1, std::min<int64_t>(free, 14));
  if (const auto ow = p.ow.as_const(); ow && *ow > 0) {
    const int64_t tiles = (*ow + width - 1) / width;
    width = (*ow + tiles - 1) / tiles;
  }
  return static_cast<int>(width);
}

/// The nest, from outside: task (image, channel block, row chunk), row, column tile; inside a tile, per kernel row,
/// each input vector is loaded once and used by every tap that reads it.
class Conv2dDepthwise {
 public:
  Conv2dDepthwise(LowerContext& c, const ConvProblem& p)
      : c_(c),
        b_(c.b()),
        p_(p),
        lanes_(c.target().lanes_f32()),
        width_(tile_width(p, c.target())),
        x_(c.in_memory(0)->buffer()),
        w_(c.in_memory(1)->buffer()) {}

  void emit() {
    ih_ = c_.dim(p_.h), iw_ = c_.dim(p_.w);
    for_each_block_rows(c_, p_, kRowsPerTask, lanes_, [&](const RowTask& task) {
      task_ = task;
      start_.clear();
      if (c_.has_in(2))
        start_.push_back(b_.let("bias", c_.load(2, Coords{{task.block * Expr(lanes_)}, 0, lanes_, task.mask})));
      b_.loop("oh", task.begin, task.end, LoopKind::serial, [&](Expr row) { emit_row(row); });
    });
  }

 private:
  void emit_row(const Expr& oh) {
    auto [begin, end] = tap_range(oh, p_.sh, p_.dh, p_.pt, p_.kh, ih_);
    kh_begin_ = b_.let("kh_begin", begin), kh_end_ = b_.let("kh_end", end);
    cover_row(c_, p_, width_, [&](const Expr& ow, int width, const Taps* taps) {
      if (taps)
        emit_tile(oh, ow, width, *taps);
      else
        emit_border_pixel(oh, ow);
    });
  }

  void emit_tile(const Expr& oh, const Expr& ow, int width, const Taps& taps) {
    RegisterTile acc(b_, 1, width, 1, lanes_);
    acc.fill(start_);
    b_.loop("kh", kh_begin_, kh_end_, LoopKind::serial, [&](Expr kh) {
      const Expr ih = b_.let("ih", oh * Expr(p_.sh) + kh * Expr(p_.dh) - Expr(p_.pt));
      const Expr iw = b_.let("iw", ow * Expr(p_.sw) - Expr(p_.pl));
      std::vector<Expr> weights(static_cast<size_t>(p_.kw));
      const auto weight = [&](int64_t kw) {
        Expr& w = weights[static_cast<size_t>(kw)];
        if (!w) w = b_.let("w", kernel::load(w_, {task_.block, Expr(0), kh, Expr(kw), Expr(0)}, lanes_));
        return w;
      };
      for (int64_t at = 0; at < columns_read(p_, width); ++at) {
        Expr x;
        for (const auto& [kw, pixel] : taps_of_column(p_, width, at)) {
          if (!taps.empty() && !taps[static_cast<size_t>(kw)][static_cast<size_t>(pixel)]) continue;
          if (!x) x = b_.let("x", kernel::load(x_, {task_.n, task_.block, ih, iw + Expr(at), Expr(0)}, lanes_));
          acc.set(0, pixel, 0, kernel::fma(x, weight(kw), acc.get(0, pixel, 0)));
        }
      }
    });
    finish(acc, oh, ow);
  }

  void emit_border_pixel(const Expr& oh, const Expr& ow) {
    RegisterTile acc(b_, 1, 1, 1, lanes_);
    acc.fill(start_);
    auto [begin, end] = tap_range(ow, p_.sw, p_.dw, p_.pl, p_.kw, iw_);
    begin = b_.let("kw_begin", begin), end = b_.let("kw_end", end);
    b_.loop("kh", kh_begin_, kh_end_, LoopKind::serial, [&](Expr kh) {
      const Expr ih = b_.let("ih", oh * Expr(p_.sh) + kh * Expr(p_.dh) - Expr(p_.pt));
      b_.loop("kw", begin, end, LoopKind::serial, [&](Expr kw) {
        const Expr iw = ow * Expr(p_.sw) + kw * Expr(p_.dw) - Expr(p_.pl);
        acc.set(0, 0, 0,
                kernel::fma(kernel::load(x_, {task_.n, task_.block, ih, iw, Expr(0)}, lanes_),
                            kernel::load(w_, {task_.block, Expr(0), kh, kw, Expr(0)}, lanes_), acc.get(0, 0, 0)));
      });
    });
    finish(acc, oh, ow);
  }

  void finish(const RegisterTile& acc, const Expr& oh, const Expr& ow) {
    acc.finish(c_, [&](Expr, Expr x, int) {
      return Coords{{task_.n, task_.block * Expr(lanes_), oh, ow + x}, 1, lanes_, task_.mask};
    });
  }

  LowerContext& c_;
  Builder& b_;
  const ConvProblem& p_;
  int lanes_, width_;
  Buffer x_, w_;
  Expr ih_, iw_, kh_begin_, kh_end_;
  RowTask task_;
  std::vector<Expr> start_;
};

std::optional<std::string> refuse(const ops::Group& group, const TargetInfo& target) {
  ConvProblem p;
  if (auto r = read_conv(group, p)) return r;
  if (p.gic != 1 || p.goc != 1 || p.groups == 1) return "not one filter per channel";
  if (auto r = refuse_images(group, target)) return r;
  if (p.kw > 32) return "the kernel is wider than 32";
  return refuse_weight(group, 1, weight_layout(target));
}

std::vector<Prepack> prepack(const ops::Group&, const TargetInfo& target) { return {{1, weight_layout(target)}}; }

kernel::Kernel build(const ops::Group& group, const TargetInfo& target, std::string kernel_name) {
  ConvProblem p;
  CUVIL_CHECK(!read_conv(group, p), "a convolution that was refused");
  LowerContext c(group, target, std::move(kernel_name));
  Conv2dDepthwise(c, p).emit();
  return c.finish();
}

}  // namespace

const Schedule kConv2dDepthwise = {
    "conv2d_depthwise",
    "One filter per channel: vectors over channels, a row of output pixels in registers, each input vector loaded once "
    "per kernel row.",
    refuse, prepack, build};

}  // namespace cuvil::schedules
