#include <algorithm>

#include "core/base/error.h"
#include "core/schedules/conv_transpose.h"
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

constexpr int64_t kRowsPerTask = 4;

struct Plan {
  ConvProblem p;
  int lanes = 1, width = 1, vectors = 1;
  int64_t panels = 1;
  ir::Layout weights;  ///< [oc panel][ic block][kh][kw][ic lane][oc lane]
};

Plan make_plan(const ConvProblem& p, const TargetInfo& target) {
  Plan plan;
  plan.p = p;
  plan.lanes = target.lanes_f32();
  TileDemand demand;
  if (const auto ow = p.ow.as_const()) demand.positions = (*ow + p.sw - 1) / p.sw;
  demand.vectors = (p.oc + plan.lanes - 1) / plan.lanes;
  const TileChoice tile = choose_tile(demand, target);
  plan.width = tile.positions;
  plan.vectors = tile.vectors;
  plan.panels = (demand.vectors + plan.vectors - 1) / plan.vectors;
  plan.weights.order = {1, 0, 2, 3};
  plan.weights.blocks = {{0, plan.lanes}, {1, plan.vectors * plan.lanes}};
  return plan;
}

/// The nest, from outside: task (image, rows), weight panel, output row, column phase, tile of columns of the phase;
/// inside a tile the sum over (ic block, kh, taps of the phase, ic lane) in registers. No output is visited twice.
class ConvTranspose2d {
 public:
  ConvTranspose2d(LowerContext& c, const Plan& plan)
      : c_(c), b_(c.b()), plan_(plan), p_(plan.p), x_(c.in_memory(0)->buffer()), w_(c.in_memory(1)->buffer()) {}

  void emit() {
    const Expr n = c_.dim(p_.n), oh = c_.dim(p_.oh);
    h_ = c_.dim(p_.h), width_ = c_.dim(p_.w), ow_ = c_.dim(p_.ow);
    const Expr chunks = kernel::ceildiv(oh, Expr(kRowsPerTask));
    b_.phase(n * chunks, [&](Expr task) {
      const Expr chunk = b_.let("chunk", task % chunks);
      n_ = b_.let("n", kernel::floordiv(task, chunks));
      begin_ = b_.let("row_begin", chunk * Expr(kRowsPerTask));
      end_ = b_.let("row_end", kernel::min(oh, begin_ + Expr(kRowsPerTask)));
      b_.loop("panel", Expr(plan_.panels), [&](Expr panel) { emit_panel(panel); });
    });
  }

 private:
  void emit_panel(const Expr& panel) {
    panel_ = panel;
    const int64_t width = int64_t{plan_.vectors} * plan_.lanes;
    const int64_t full = p_.oc / width, rest = p_.oc % width;
    const int rest_vectors = static_cast<int>((rest + plan_.lanes - 1) / plan_.lanes);
    const int rest_lanes = static_cast<int>(p_.oc % plan_.lanes);
    if (rest == 0) return emit_rows(plan_.vectors, 0);
    if (full == 0) return emit_rows(rest_vectors, rest_lanes);
    b_.branch(panel < Expr(full), [&] { emit_rows(plan_.vectors, 0); }, [&] { emit_rows(rest_vectors, rest_lanes); });
  }

  void emit_rows(int vectors, int last_lanes) {
    vectors_ = vectors;
    last_mask_ = last_lanes ? kernel::lane_mask(Expr(0), Expr(last_lanes), plan_.lanes) : Expr();
    start_.clear();
    if (p_.bias)
      for (int v = 0; v < vectors; ++v)
        start_.push_back(b_.let("bias", c_.load(2, Coords{{channel(v)}, 0, plan_.lanes, mask(v)})));
    b_.loop("oh", begin_, end_, LoopKind::serial, [&](Expr oh) {
      for (const ColumnPhase& phase : column_phases(p_)) emit_phase(oh, phase);
    });
  }

  void emit_phase(const Expr& oh, const ColumnPhase& phase) {
    const Expr columns = p_.ow.is_const()
                             ? Expr(std::max<int64_t>(0, (p_.ow.value() - phase.begin + p_.sw - 1) / p_.sw))
                             : b_.let("columns", kernel::ceildiv(ow_ - Expr(phase.begin), Expr(p_.sw)));
    int64_t low = 0, high = 0;  // of the offsets
    for (const ColumnPhase::Tap& tap : phase.taps) low = std::min(low, tap.offset), high = std::max(high, tap.offset);
    Expr first = kernel::min(columns, Expr(-low));
    Expr end = kernel::max(first, kernel::min(columns, width_ - Expr(high)));
    if (first->op != kernel::Op::const_int) first = b_.let("first", first);
    if (end->op != kernel::Op::const_int) end = b_.let("end", end);
    cover(b_, first, end, plan_.width, [&](const Expr& q, int width) { emit_tile(oh, q, width, phase, false); });
    const Expr border = first + (columns - end);
    if (border.is_const_int(0)) return;
    b_.loop("border", border,
            [&](Expr i) { emit_tile(oh, b_.let("q", kernel::select(i < first, i, i - first + end)), 1, phase, true); });
  }

  void emit_tile(const Expr& oh, const Expr& q, int width, const ColumnPhase& phase, bool clipped) {
    RegisterTile acc(b_, 1, width, vectors_, plan_.lanes);
    acc.fill(start_);
    const int64_t blocks = (p_.ic + plan_.lanes - 1) / plan_.lanes;
    const bool exact = p_.ic % plan_.lanes == 0;
    const int copies = static_cast<int>(std::max<size_t>(1, phase.taps.size()));
    const int unroll = unroll_factor(exact ? plan_.lanes : p_.ic, std::clamp(120 / (width * vectors_ * copies), 1, 4));
    b_.loop("ic", Expr(blocks), [&](Expr block) {
      const Expr lanes = exact
                             ? Expr(plan_.lanes)
                             : b_.let("lanes", kernel::min(Expr(plan_.lanes), Expr(p_.ic) - block * Expr(plan_.lanes)));
      b_.loop("kh", Expr(p_.kh), [&](Expr kh) {
        const auto [row, met] = met_row(p_, oh, kh, h_);
        const Expr ih = b_.let("ih", row);
        b_.branch(met, [&, &acc = acc] {
          for (const ColumnPhase::Tap& tap : phase.taps) {
            const Expr iw = b_.let("iw", q + Expr(tap.offset));
            const auto sum = [&] {
              b_.loop(
                  "lane", Expr(0), lanes, LoopKind::serial,
                  [&](Expr lane0) {
                    for (int u = 0; u < unroll; ++u) {
                      const Expr lane = lane0 + Expr(u);
                      std::vector<Expr> weights;
                      for (int v = 0; v < vectors_; ++v)
                        weights.push_back(
                            b_.let("w", kernel::load(w_, {panel_, block, kh, Expr(tap.kw), lane, Expr(v * plan_.lanes)},
                                                     plan_.lanes)));
                      for (int x = 0; x < width; ++x)
                        acc.multiply_add(0, x, kernel::load(x_, {n_, block, ih, iw + Expr(x), lane}), weights);
                    }
                  },
                  unroll);
            };
            if (!clipped) {
              sum();
              continue;
            }
            b_.branch((iw >= Expr(0)) & (iw < width_), sum);
          }
        });
      });
    });
    acc.finish(c_, [&](Expr, Expr x, int v) {
      const Expr ow = (q + x) * Expr(p_.sw) + Expr(phase.begin);
      return Coords{{n_, channel(v), oh, ow}, 1, plan_.lanes, mask(v)};
    });
  }

  Expr channel(int v) const { return (panel_ * Expr(plan_.vectors) + Expr(v)) * Expr(plan_.lanes); }
  Expr mask(int v) const { return v + 1 == vectors_ ? last_mask_ : Expr(); }

  LowerContext& c_;
  Builder& b_;
  const Plan& plan_;
  const ConvProblem& p_;
  Buffer x_, w_;
  Expr h_, width_, ow_, n_, begin_, end_, panel_, last_mask_;
  std::vector<Expr> start_;
  int vectors_ = 1;
};

std::optional<std::string> refuse(const ops::Group& group, const TargetInfo& target) {
  if (!group.anchor || group.anchor->op != "ConvTranspose2D") return "not a transposed convolution";
  ConvProblem p;
  if (auto r = read_conv(group, p)) return r;
  if (p.groups != 1) return "grouped";
  if (p.sw > 4) return "strides of more than 4 columns";
  if (auto r = refuse_images(group, target)) return r;
  return refuse_weight(group, 1, make_plan(p, target).weights);
}

std::vector<Prepack> prepack(const ops::Group& group, const TargetInfo& target) {
  ConvProblem p;
  if (read_conv(group, p)) return {};
  return {{1, make_plan(p, target).weights}};
}

kernel::Kernel build(const ops::Group& group, const TargetInfo& target, std::string kernel_name) {
  ConvProblem p;
  CUVIL_CHECK(!read_conv(group, p), "a convolution that was refused");
  const Plan plan = make_plan(p, target);
  LowerContext c(group, target, std::move(kernel_name));
  ConvTranspose2d(c, plan).emit();
  return c.finish();
}

}  // namespace

const Schedule kConvTranspose2d = {"conv_transpose2d_nchwc",
                                   "Transposed convolution of channel blocks as a gather: per phase of the stride, "
                                   "tiles of output pixels x channels in "
                                   "registers.",
                                   refuse, prepack, build};

}  // namespace cuvil::schedules
