#include <algorithm>

#include "core/base/error.h"
#include "core/schedules/conv_transpose.h"
#include "core/schedules/list.h"
#include "core/schedules/tile.h"
#include "core/schedules/transpose_tile.h"

namespace cuvil::schedules {

namespace {

constexpr int64_t kRowsPerTask = 4;
constexpr int64_t kMostChannels = 4;

/// The nest, from outside: task (image, four rows), output row, tile of columns, kernel row, input channel; vectors run
/// along the row. A task first turns its input rows from channel blocks into rows of single channels in scratch, with
/// zeros at both ends, so that no tap needs a guard.
class ConvTranspose2dPlain {
 public:
  ConvTranspose2dPlain(LowerContext& c, const ConvProblem& p)
      : c_(c),
        b_(c.b()),
        p_(p),
        lanes_(c.target().lanes_f32()),
        phases_(column_phases(p)),
        x_(c.in_memory(0)->buffer()),
        w_(c.in_memory(1)->buffer()) {
    for (const ColumnPhase& phase : phases_)
      for (const ColumnPhase::Tap& tap : phase.taps)
        left_ = std::max(left_, -tap.offset), right_ = std::max(right_, tap.offset);
    vectors_ = static_cast<int>(std::clamp<int64_t>(c.target().vector_registers / 2 / (p.oc * p.sw), 1, 4));
  }

  void emit() {
    h_ = c_.dim(p_.h), width_ = c_.dim(p_.w), ow_ = c_.dim(p_.ow);
    const int64_t blocks = (p_.ic + lanes_ - 1) / lanes_, step = int64_t{vectors_} * lanes_;
    const int64_t rows = (kRowsPerTask - 1 + (p_.kh - 1) * p_.dh) / p_.sh + 2;
    // Columns of a phase, in whole tiles, and what the taps of the last tile reach.
    const Expr reach =
        kernel::ceildiv(kernel::ceildiv(ow_, Expr(p_.sw)), Expr(step)) * Expr(step) + Expr(left_ + right_);
    const Expr columns = kernel::max(reach, width_ + Expr(left_)) + Expr(lanes_);
    for_each_rows(c_, p_, kRowsPerTask, [&](const RowTask& task) {
      n_ = task.n;
      band_ = b_.alloc("band", {DType::f32}, {Expr(blocks * lanes_), Expr(rows), columns}, Space::scratch);
      first_row_ = b_.let("first_row", kernel::floordiv(task.begin + Expr(p_.pt - (p_.kh - 1) * p_.dh), Expr(p_.sh)));
      b_.loop("block", Expr(blocks), [&](Expr block) {
        b_.loop("r", Expr(rows), [&](Expr r) {
          const Expr ih = b_.let("ih", first_row_ + r);
          b_.branch((ih >= Expr(0)) & (ih < h_), [&] { turn_row(block, r, ih, columns); });
        });
      });
      b_.loop("oh", task.begin, task.end, LoopKind::serial, [&](Expr row) {
        const Expr full = b_.let("full", kernel::floordiv(ow_, Expr(step * p_.sw)) * Expr(step));
        b_.loop("q", Expr(0), full, LoopKind::serial, [&](Expr q) { emit_tile(row, q, false); }, step);
        b_.branch(full * Expr(p_.sw) < ow_, [&] { emit_tile(row, full, true); });
      });
    });
  }

 private:
  void turn_row(const Expr& block, const Expr& r, const Expr& ih, const Expr& columns) {
    const Expr zero = kernel::constant({DType::f32, static_cast<uint16_t>(lanes_)}, 0);
    const auto fill = [&](const Expr& begin, const Expr& end) {
      b_.loop("l", Expr(lanes_), [&](Expr l) {
        b_.loop(
            "x", begin, end, LoopKind::serial,
            [&](Expr x) { b_.store(band_, {block * Expr(lanes_) + l, r, x}, zero, kernel::lane_mask(x, end, lanes_)); },
            lanes_);
      });
    };
    if (left_ > 0) fill(Expr(0), Expr(left_));
    b_.loop(
        "x", Expr(0), width_, LoopKind::serial,
        [&](Expr x) {
          std::vector<Expr> pixels;
          for (int l = 0; l < lanes_; ++l) {
            const Expr iw = kernel::min(x + Expr(l), width_ - Expr(1));
            pixels.push_back(b_.let("pixel", kernel::load(x_, {n_, block, ih, iw, Expr(0)}, lanes_)));
          }
          pixels = transpose_square(b_, std::move(pixels));
          for (int l = 0; l < lanes_; ++l)
            b_.store(band_, {block * Expr(lanes_) + Expr(l), r, x + Expr(left_)}, pixels[static_cast<size_t>(l)]);
        },
        lanes_);
    // Also what the last square wrote beyond the row.
    fill(width_ + Expr(left_), columns);
  }

  void emit_tile(const Expr& oh, const Expr& q, bool masked) {
    const int channels = static_cast<int>(p_.oc), phases = static_cast<int>(p_.sw);
    // Positions: vector x phase; "vectors": output channels.
    RegisterTile acc(b_, vectors_, phases, channels, lanes_);
    std::vector<Expr> start;
    if (c_.has_in(2))
      for (int m = 0; m < channels; ++m)
        start.push_back(b_.let("bias", kernel::broadcast(c_.load(2, Coords{{Expr(m)}}), lanes_)));
    acc.fill(start);
    b_.loop("kh", Expr(p_.kh), [&](Expr kh) {
      const auto [row, met] = met_row(p_, oh, kh, h_);
      const Expr r = b_.let("r", row - first_row_);
      b_.branch(met, [&] {
        b_.loop("ic", Expr(p_.ic), [&](Expr ic) {
          for (int f = 0; f < phases; ++f)
            for (const ColumnPhase::Tap& tap : phases_[static_cast<size_t>(f)].taps) {
              std::vector<Expr> weights;
              for (int m = 0; m < channels; ++m)
                weights.push_back(
                    b_.let("w", kernel::broadcast(kernel::load(w_, {ic, Expr(m), kh, Expr(tap.kw)}), lanes_)));
              for (int v = 0; v < vectors_; ++v) {
                const Expr at = q + Expr(left_ + tap.offset + v * lanes_);
                const Expr x = b_.let("x", kernel::load(band_, {ic, r, at}, lanes_));
                for (int m = 0; m < channels; ++m)
                  acc.set(v, f, m, kernel::fma(x, weights[static_cast<size_t>(m)], acc.get(v, f, m)));
              }
            }
        });
      });
    });
    std::vector<int> low, high;
    for (int i = 0; i < lanes_ / 2; ++i) {
      low.insert(low.end(), {i, lanes_ + i});
      high.insert(high.end(), {lanes_ / 2 + i, lanes_ + lanes_ / 2 + i});
    }
    for (int v = 0; v < vectors_; ++v)
      for (int m = 0; m < channels; ++m)
        for (int half = 0; half < phases; ++half) {
          Expr value = acc.get(v, 0, m);
          if (phases == 2) value = b_.let("y", kernel::shuffle({value, acc.get(v, 1, m)}, half ? high : low));
          const Expr ow = (q + Expr(v * lanes_)) * Expr(p_.sw) + Expr(half * lanes_);
          c_.store(Coords{{n_, Expr(m), oh, ow}, 3, lanes_, masked ? kernel::lane_mask(ow, ow_, lanes_) : Expr()},
                   value);
        }
  }

  LowerContext& c_;
  Builder& b_;
  const ConvProblem& p_;
  int lanes_, vectors_ = 1;
  std::vector<ColumnPhase> phases_;
  int64_t left_ = 0, right_ = 0;
  Buffer x_, w_, band_;
  Expr h_, width_, ow_, n_, first_row_;
};

std::optional<std::string> refuse(const ops::Group& group, const TargetInfo& target) {
  ConvProblem p;
  if (auto r = read_conv_transpose(group, p)) return r;
  if (p.groups != 1) return "grouped";
  if (p.oc > kMostChannels)
    return std::to_string(p.oc) + " output channels are more than " + std::to_string(kMostChannels);
  if (p.sw > 2) return "strides of more than 2 columns";
  if (auto r = refuse_images(group, target, Image::blocked, Image::plain)) return r;
  if (!group.anchor->input(1)->type.layout.is_plain()) return "the weight is not in plain layout";
  return {};
}

kernel::Kernel build(const ops::Group& group, const TargetInfo& target, std::string kernel_name) {
  ConvProblem p;
  CUVIL_CHECK(!read_conv_transpose(group, p), "a convolution that was refused");
  LowerContext c(group, target, std::move(kernel_name));
  ConvTranspose2dPlain(c, p).emit();
  return c.finish();
}

}  // namespace

const Schedule kConvTranspose2dPlain = {"conv_transpose2d_plain",
                                        "Transposed convolution from NCHWc to at most 4 plain channels: input rows "
                                        "turned in scratch, vectors along the row.",
                                        refuse, nullptr, build};

}  // namespace cuvil::schedules
