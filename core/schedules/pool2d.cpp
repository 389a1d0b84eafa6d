#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/schedules/conv_problem.h"
#include "core/schedules/list.h"
#include "core/schedules/tile.h"

namespace cuvil::schedules {

namespace {

constexpr int64_t kRowsPerTask = 8;

/// The geometry of a pooling as that of a convolution with one filter per channel.
std::optional<std::string> read_pool(const ops::Group& group, ConvProblem& p) {
  const ir::Node& node = *group.anchor;
  const ir::Type& x = node.input(0)->type;
  if (x.dtype != DType::f32) return "only f32 is scheduled";
  const auto channels = x.shape[1].as_const();
  if (!channels) return "the number of channels is symbolic (" + x.shape[1].str() + ")";
  read_window(node, p);
  p.ic = p.oc = p.groups = *channels;
  const auto& kernel = node.attr<std::vector<int64_t>>("kernel");
  p.kh = kernel[0], p.kw = kernel[1];
  return {};
}

/// The nest, from outside: task (image, channel block, row chunk), row, column tile; inside a tile, per kernel row,
/// each input vector is loaded once and used by every window that holds it.
class Pool2d {
 public:
  Pool2d(LowerContext& c, const ConvProblem& p)
      : c_(c), b_(c.b()), p_(p), lanes_(c.target().lanes_f32()), x_(c.in_memory(0)->buffer()) {
    maximum_ = c.node().op == "MaxPool2D";
    count_pads_ = !maximum_ && c.node().attr<int64_t>("count_include_pad") != 0;
    tile_ = std::min<int>(8, c.target().vector_registers / 2 - 2);
    if (const auto ow = p.ow.as_const(); ow && *ow > 0) {
      const int64_t tiles = (*ow + tile_ - 1) / tile_;
      tile_ = static_cast<int>((*ow + tiles - 1) / tiles);
    }
  }

  void emit() {
    h_ = c_.dim(p_.h), w_ = c_.dim(p_.w), ow_ = c_.dim(p_.ow);
    for_each_block_rows(c_, p_, kRowsPerTask, lanes_, [&](const RowTask& task) {
      task_ = task;
      b_.loop("oh", task.begin, task.end, LoopKind::serial, [&](Expr row) { emit_row(row); });
    });
  }

 private:
  void emit_row(const Expr& oh) {
    const auto [begin, end] = tap_range(oh, p_.sh, p_.dh, p_.pt, p_.kh, h_);
    kh_begin_ = b_.let("kh_begin", begin), kh_end_ = b_.let("kh_end", end);
    const auto [first, last] = interior(w_, ow_, p_.sw, p_.dw, p_.pl, p_.kw);
    cover_between(
        b_, "ow", first, last, ow_, tile_, [&](const Expr& ow, int width) { emit_tile(oh, ow, width); },
        [&](const Expr& ow) { emit_border_pixel(oh, ow); });
  }

  void emit_tile(const Expr& oh, const Expr& ow, int width) {
    RegisterTile acc(b_, 1, width, 1, lanes_);
    acc.fill({start()});
    b_.loop("kh", kh_begin_, kh_end_, LoopKind::serial, [&](Expr kh) {
      const Expr ih = b_.let("ih", oh * Expr(p_.sh) + kh * Expr(p_.dh) - Expr(p_.pt));
      const Expr iw = b_.let("iw", ow * Expr(p_.sw) - Expr(p_.pl));
      for (int64_t at = 0; at < columns_read(p_, width); ++at) {
        Expr x;
        for (const auto& [kw, pixel] : taps_of_column(p_, width, at)) {
          if (!x) x = b_.let("x", kernel::load(x_, {task_.n, task_.block, ih, iw + Expr(at), Expr(0)}, lanes_));
          acc.set(0, pixel, 0, combine(acc.get(0, pixel, 0), x));
        }
      }
    });
    finish(acc, oh, ow, Expr(p_.kw));
  }

  void emit_border_pixel(const Expr& oh, const Expr& ow) {
    RegisterTile acc(b_, 1, 1, 1, lanes_);
    acc.fill({start()});
    auto [begin, end] = tap_range(ow, p_.sw, p_.dw, p_.pl, p_.kw, w_);
    begin = b_.let("kw_begin", begin), end = b_.let("kw_end", end);
    b_.loop("kh", kh_begin_, kh_end_, LoopKind::serial, [&](Expr kh) {
      const Expr ih = b_.let("ih", oh * Expr(p_.sh) + kh * Expr(p_.dh) - Expr(p_.pt));
      b_.loop("kw", begin, end, LoopKind::serial, [&](Expr kw) {
        const Expr iw = ow * Expr(p_.sw) + kw * Expr(p_.dw) - Expr(p_.pl);
        acc.set(0, 0, 0, combine(acc.get(0, 0, 0), kernel::load(x_, {task_.n, task_.block, ih, iw, Expr(0)}, lanes_)));
      });
    });
    finish(acc, oh, ow, end - begin);
  }

  kernel::Type vector_type() const { return {DType::f32, static_cast<uint16_t>(lanes_)}; }
  Expr start() const {
    return kernel::constant(vector_type(), maximum_ ? -std::numeric_limits<double>::infinity() : 0);
  }
  Expr combine(const Expr& a, const Expr& b) const { return maximum_ ? kernel::max(a, b) : a + b; }

  /// `columns`: taps of a kernel row that lie inside the image.
  void finish(RegisterTile& acc, const Expr& oh, const Expr& ow, const Expr& columns) {
    if (!maximum_) {
      const Expr taps = count_pads_ ? Expr(p_.kh * p_.kw) : (kh_end_ - kh_begin_) * columns;
      const Expr count = b_.let("count", kernel::broadcast(kernel::cast({DType::f32, 1}, taps), lanes_));
      for (int x = 0; x < acc.width(); ++x) acc.set(0, x, 0, acc.get(0, x, 0) / count);
    }
    acc.finish(c_, [&](Expr, Expr x, int) {
      return Coords{{task_.n, task_.block * Expr(lanes_), oh, ow + x}, 1, lanes_, task_.mask};
    });
  }

  LowerContext& c_;
  Builder& b_;
  const ConvProblem& p_;
  int lanes_, tile_ = 1;
  bool maximum_ = false, count_pads_ = false;
  Buffer x_;
  Expr h_, w_, ow_, kh_begin_, kh_end_;
  RowTask task_;
};

std::optional<std::string> refuse(const ops::Group& group, const TargetInfo& target) {
  if (!group.anchor || (group.anchor->op != "MaxPool2D" && group.anchor->op != "AveragePool2D")) return "not a pooling";
  if (auto r = refuse_images(group, target)) return r;
  if (group.anchor->attr<int64_t>("ceil_mode") != 0) return "its last windows may overhang (ceil_mode)";
  ConvProblem p;
  if (auto r = read_pool(group, p)) return r;
  if (p.kw > 16) return "the window is wider than 16";
  return {};
}

kernel::Kernel build(const ops::Group& group, const TargetInfo& target, std::string kernel_name) {
  ConvProblem p;
  CUVIL_CHECK(!read_pool(group, p), "a pooling that was refused");
  LowerContext c(group, target, std::move(kernel_name));
  Pool2d(c, p).emit();
  return c.finish();
}

}  // namespace

const Schedule kPool2d = {"pool2d_nchwc",
                          "Maximum or mean over windows: vectors over channels, a row of outputs in registers, each "
                          "input vector loaded once per "
                          "kernel row.",
                          refuse, nullptr, build};

}  // namespace cuvil::schedules
