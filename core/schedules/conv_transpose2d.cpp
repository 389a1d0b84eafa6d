#include <algorithm>

#include "core/base/error.h"
#include "core/schedules/conv_transpose.h"
#include "core/schedules/list.h"
#include "core/schedules/panels.h"
#include "core/schedules/tile.h"

namespace cuvil::schedules {

namespace {

constexpr int64_t kRowsPerTask = 4;

struct Plan {
  ConvProblem p;
  int lanes = 1;
  int width = 1;  ///< of a tile, in pixels
  Panels panels;
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
  plan.panels = {p.oc, tile.vectors, plan.lanes};
  plan.weights.order = {1, 0, 2, 3};
  plan.weights.blocks = {{0, plan.lanes}, {1, static_cast<int>(plan.panels.width())}};
  return plan;
}

/// The nest, from outside: task (image, rows), weight panel, output row, column phase, tile of columns of the phase;
/// inside a tile the sum over (ic block, kh, taps of the phase, ic lane) in registers. No output is visited twice.
class ConvTranspose2d {
 public:
  ConvTranspose2d(LowerContext& c, const Plan& plan)
      : c_(c), b_(c.b()), plan_(plan), p_(plan.p), x_(c.in_memory(0)->buffer()), w_(c.in_memory(1)->buffer()) {}

  void emit() {
    h_ = c_.dim(p_.h), width_ = c_.dim(p_.w), ow_ = c_.dim(p_.ow);
    for_each_rows(c_, p_, kRowsPerTask, [&](const RowTask& task) {
      task_ = task;
      b_.loop("panel", Expr(plan_.panels.count()),
              [&](Expr index) { emit_panel(b_, plan_.panels, index, [&](const Panel& panel) { emit_rows(panel); }); });
    });
  }

 private:
  void emit_rows(const Panel& panel) {
    panel_ = panel;
    start_ = bias_of(c_, panel);
    b_.loop("oh", task_.begin, task_.end, LoopKind::serial, [&](Expr oh) {
      for (const ColumnPhase& phase : column_phases(p_)) emit_phase(oh, phase);
    });
  }

  void emit_phase(const Expr& oh, const ColumnPhase& phase) {
    const Expr columns = p_.ow.is_const()
                             ? Expr(std::max<int64_t>(0, (p_.ow.value() - phase.begin + p_.sw - 1) / p_.sw))
                             : b_.let("columns", kernel::ceildiv(ow_ - Expr(phase.begin), Expr(p_.sw)));
    int64_t low = 0, high = 0;  // of the offsets
    for (const ColumnPhase::Tap& tap : phase.taps) low = std::min(low, tap.offset), high = std::max(high, tap.offset);
    const Expr first = kernel::min(columns, Expr(-low));
    const Expr end = kernel::max(first, kernel::min(columns, width_ - Expr(high)));
    cover_between(
        b_, "q", first, end, columns, plan_.width,
        [&](const Expr& q, int width) { emit_tile(oh, q, width, phase, false); },
        [&](const Expr& q) { emit_tile(oh, q, 1, phase, true); });
  }

  void emit_tile(const Expr& oh, const Expr& q, int width, const ColumnPhase& phase, bool clipped) {
    RegisterTile acc(b_, 1, width, panel_.vectors, plan_.lanes);
    acc.fill(start_);
    const int64_t blocks = (p_.ic + plan_.lanes - 1) / plan_.lanes;
    const bool exact = p_.ic % plan_.lanes == 0;
    const int copies = static_cast<int>(std::max<size_t>(1, phase.taps.size()));
    const int unroll =
        unroll_factor(exact ? plan_.lanes : p_.ic, std::clamp(120 / (width * panel_.vectors * copies), 1, 4));
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
                      for (int v = 0; v < panel_.vectors; ++v)
                        weights.push_back(b_.let(
                            "w", kernel::load(w_, {panel_.index, block, kh, Expr(tap.kw), lane, Expr(v * plan_.lanes)},
                                              plan_.lanes)));
                      for (int x = 0; x < width; ++x)
                        acc.multiply_add(0, x, kernel::load(x_, {task_.n, block, ih, iw + Expr(x), lane}), weights);
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
      return Coords{{task_.n, panel_.channel(v), oh, ow}, 1, plan_.lanes, panel_.mask(v)};
    });
  }

  LowerContext& c_;
  Builder& b_;
  const Plan& plan_;
  const ConvProblem& p_;
  Buffer x_, w_;
  Expr h_, width_, ow_;
  RowTask task_;
  Panel panel_;
  std::vector<Expr> start_;
};

std::optional<std::string> refuse(const ops::Group& group, const TargetInfo& target) {
  ConvProblem p;
  if (auto r = read_conv_transpose(group, p)) return r;
  if (p.groups != 1) return "grouped";
  if (p.sw > 4) return "strides of more than 4 columns";
  if (auto r = refuse_images(group, target)) return r;
  return refuse_weight(group, 1, make_plan(p, target).weights);
}

std::vector<Prepack> prepack(const ops::Group& group, const TargetInfo& target) {
  ConvProblem p;
  if (read_conv_transpose(group, p)) return {};
  return {{1, make_plan(p, target).weights}};
}

kernel::Kernel build(const ops::Group& group, const TargetInfo& target, std::string kernel_name) {
  ConvProblem p;
  CUVIL_CHECK(!read_conv_transpose(group, p), "a convolution that was refused");
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
