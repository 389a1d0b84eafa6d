#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/schedules/conv_problem.h"
#include "core/schedules/list.h"
#include "core/schedules/tile.h"

namespace cuvil::schedules {

using kernel::Buffer;
using kernel::Builder;
using kernel::Expr;
using kernel::LoopKind;
using ops::Coords;
using ops::LowerContext;

namespace {

constexpr int64_t kRowsPerTask = 8;

/// The geometry of a pooling as that of a convolution with one filter per channel.
std::optional<std::string> read_pool(const ops::Group& group, ConvProblem& p) {
  const ir::Node& node = *group.anchor;
  const ir::Type &x = node.input(0)->type, &y = node.output()->type;
  if (x.dtype != DType::f32) return "only f32 is scheduled";
  const auto channels = x.shape[1].as_const();
  if (!channels) return "the number of channels is symbolic (" + x.shape[1].str() + ")";
  p.n = x.shape[0], p.h = x.shape[2], p.w = x.shape[3], p.oh = y.shape[2], p.ow = y.shape[3];
  p.ic = p.oc = p.groups = *channels;
  const auto& kernel = node.attr<std::vector<int64_t>>("kernel");
  const auto& strides = node.attr<std::vector<int64_t>>("strides");
  const auto& dilations = node.attr<std::vector<int64_t>>("dilations");
  const auto& pads = node.attr<std::vector<int64_t>>("pads");
  p.kh = kernel[0], p.kw = kernel[1], p.sh = strides[0], p.sw = strides[1], p.dh = dilations[0], p.dw = dilations[1];
  p.pt = pads[0], p.pl = pads[1], p.pb = pads[2], p.pr = pads[3];
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
    const Expr n = c_.dim(p_.n), oh = c_.dim(p_.oh);
    h_ = c_.dim(p_.h), w_ = c_.dim(p_.w), ow_ = c_.dim(p_.ow);
    const int64_t blocks = (p_.oc + lanes_ - 1) / lanes_;
    const Expr chunks = kernel::ceildiv(oh, Expr(kRowsPerTask));
    b_.phase(n * Expr(blocks) * chunks, [&](Expr task) {
      const Expr chunk = b_.let("chunk", task % chunks);
      const Expr rest = b_.let("rest", kernel::floordiv(task, chunks));
      block_ = b_.let("block", rest % Expr(blocks));
      n_ = b_.let("n", kernel::floordiv(rest, Expr(blocks)));
      const Expr begin = b_.let("row_begin", chunk * Expr(kRowsPerTask));
      const Expr end = b_.let("row_end", kernel::min(oh, begin + Expr(kRowsPerTask)));
      if (p_.oc % lanes_ != 0) mask_ = b_.let("mask", kernel::lane_mask(block_ * Expr(lanes_), Expr(p_.oc), lanes_));
      b_.loop("oh", begin, end, LoopKind::serial, [&](Expr row) { emit_row(row); });
    });
  }

 private:
  void emit_row(const Expr& oh) {
    const auto [begin, end] = tap_range(oh, p_.sh, p_.dh, p_.pt, p_.kh, h_);
    kh_begin_ = b_.let("kh_begin", begin), kh_end_ = b_.let("kh_end", end);
    const auto [first_inside, end_inside] = interior(w_, ow_, p_.sw, p_.dw, p_.pl, p_.kw);
    const Expr first = b_.let("first", first_inside), last = b_.let("last", end_inside);
    const auto known = [](const Expr& e) { return e->op == kernel::Op::const_int; };
    const bool fixed = known(first_inside) && known(end_inside);
    cover(b_, fixed ? first_inside : first, fixed ? end_inside : last, tile_,
          [&](const Expr& ow, int width) { emit_tile(oh, ow, width); });
    b_.loop("border", first + (ow_ - last),
            [&](Expr i) { emit_border_pixel(oh, b_.let("ow", kernel::select(i < first, i, i - first + last))); });
  }

  void emit_tile(const Expr& oh, const Expr& ow, int width) {
    RegisterTile acc(b_, 1, width, 1, lanes_);
    acc.fill({start()});
    b_.loop("kh", kh_begin_, kh_end_, LoopKind::serial, [&](Expr kh) {
      const Expr ih = b_.let("ih", oh * Expr(p_.sh) + kh * Expr(p_.dh) - Expr(p_.pt));
      const Expr iw = b_.let("iw", ow * Expr(p_.sw) - Expr(p_.pl));
      const int64_t reach = (width - 1) * p_.sw + (p_.kw - 1) * p_.dw;
      for (int64_t at = 0; at <= reach; ++at) {
        Expr x;
        for (int64_t kw = 0; kw < p_.kw; ++kw) {
          const int64_t offset = at - kw * p_.dw;
          if (offset < 0 || offset % p_.sw != 0 || offset / p_.sw >= width) continue;
          if (!x) x = b_.let("x", kernel::load(x_, {n_, block_, ih, iw + Expr(at), Expr(0)}, lanes_));
          const int column = static_cast<int>(offset / p_.sw);
          acc.set(0, column, 0, combine(acc.get(0, column, 0), x));
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
        acc.set(0, 0, 0, combine(acc.get(0, 0, 0), kernel::load(x_, {n_, block_, ih, iw, Expr(0)}, lanes_)));
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
    acc.finish(c_,
               [&](Expr, Expr x, int) { return Coords{{n_, block_ * Expr(lanes_), oh, ow + x}, 1, lanes_, mask_}; });
  }

  LowerContext& c_;
  Builder& b_;
  const ConvProblem& p_;
  int lanes_, tile_ = 1;
  bool maximum_ = false, count_pads_ = false;
  Buffer x_;
  Expr h_, w_, ow_, n_, block_, mask_, kh_begin_, kh_end_;
};

std::optional<std::string> refuse(const ops::Group& group, const TargetInfo& target) {
  if (!group.anchor || (group.anchor->op != "MaxPool2D" && group.anchor->op != "AveragePool2D")) return "not a pooling";
  const ir::Layout wanted = ir::Layout::nchwc(4, target.lanes_f32());
  if (group.anchor->input(0)->type.layout != wanted) return "the input is not blocked as " + wanted.str(4);
  if (stored_type(group).layout != wanted) return "the output is not blocked as " + wanted.str(4);
  if (!reads_memory(group, 0)) return "a producer is fused in front of it";
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
