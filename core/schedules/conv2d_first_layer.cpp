#include <algorithm>

#include "core/base/error.h"
#include "core/schedules/conv_problem.h"
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
  ir::Layout weights;  ///< [oc panel][ic][kh][kw][oc lane]
};

Plan make_plan(const ConvProblem& p, const TargetInfo& target) {
  Plan plan;
  plan.p = p;
  plan.lanes = target.lanes_f32();
  TileDemand demand;
  demand.positions = p.ow.as_const().value_or(0);
  demand.vectors = (p.oc + plan.lanes - 1) / plan.lanes;
  const TileChoice tile = choose_tile(demand, target);
  plan.width = tile.positions;
  plan.panels = {p.oc, tile.vectors, plan.lanes};
  plan.weights.blocks = {{0, static_cast<int>(plan.panels.width())}};
  return plan;
}

/// The nest, from outside: task (image, rows), weight panel, row, column tile; inside a tile the sum over (kh, kw, ic)
/// in registers. A task first copies its input rows to scratch with zeros around, so that no tap needs a guard: few
/// channels make this cheap.
class Conv2dFirstLayer {
 public:
  Conv2dFirstLayer(LowerContext& c, const Plan& plan)
      : c_(c), b_(c.b()), plan_(plan), p_(plan.p), x_(c.in_memory(0)->buffer()), w_(c.in_memory(1)->buffer()) {}

  void emit() {
    const Expr ow = c_.dim(p_.ow), h = c_.dim(p_.h), w = c_.dim(p_.w);
    const int64_t rows = (kRowsPerTask - 1) * p_.sh + (p_.kh - 1) * p_.dh + 1;
    const Expr columns = (ow - Expr(1)) * Expr(p_.sw) + Expr((p_.kw - 1) * p_.dw + 1);
    for_each_rows(c_, p_, kRowsPerTask, [&](const RowTask& task) {
      task_ = task;
      band_ = b_.alloc("band", {DType::f32}, {Expr(p_.ic), Expr(rows), columns}, Space::scratch);
      b_.loop("c", Expr(p_.ic),
              [&](Expr c) { b_.loop("r", Expr(rows), [&](Expr r) { copy_row(c, r, h, w, columns); }); });
      b_.loop("panel", Expr(plan_.panels.count()), [&](Expr index) {
        emit_panel(b_, plan_.panels, index, [&](const Panel& panel) { emit_rows(panel, ow); });
      });
    });
  }

 private:
  void copy_row(const Expr& c, const Expr& r, const Expr& h, const Expr& w, const Expr& columns) {
    const Expr ih = b_.let("ih", task_.begin * Expr(p_.sh) - Expr(p_.pt) + r);
    // The part of the image that the band holds; taps of no output may lie beyond.
    const Expr left = kernel::min(Expr(p_.pl), columns);
    const Expr width = b_.let("width", kernel::min(w, columns - left));
    b_.branch((ih >= Expr(0)) & (ih < h),
              [&] {
                zero(c, r, Expr(0), left);
                vectors(width, [&](const Expr& x, const Expr& mask) {
                  b_.store(band_, {c, r, x + left}, kernel::load(x_, {task_.n, c, ih, x}, plan_.lanes, mask), mask);
                });
                zero(c, r, left + width, columns);
              },
              [&] { zero(c, r, Expr(0), columns); });
  }
  void zero(const Expr& c, const Expr& r, const Expr& begin, const Expr& end) {
    const Expr value = kernel::constant({DType::f32, static_cast<uint16_t>(plan_.lanes)}, 0);
    vectors(end - begin, [&](const Expr& x, const Expr& mask) { b_.store(band_, {c, r, begin + x}, value, mask); });
  }
  void vectors(const Expr& extent, const std::function<void(const Expr&, const Expr&)>& body) {
    ops::vector_loop(b_, "x", Expr(0), extent, plan_.lanes, body);
  }

  void emit_rows(const Panel& panel, const Expr& ow) {
    panel_ = panel;
    start_ = bias_of(c_, panel);
    b_.loop("oh", task_.begin, task_.end, LoopKind::serial, [&](Expr oh) {
      cover(b_, Expr(0), ow, plan_.width, [&](const Expr& at, int width) { emit_tile(oh, at, width); });
    });
  }

  void emit_tile(const Expr& oh, const Expr& ow, int width) {
    RegisterTile acc(b_, 1, width, panel_.vectors, plan_.lanes);
    acc.fill(start_);
    const Expr column = b_.let("column", ow * Expr(p_.sw));
    const bool few = p_.ic <= 4;
    b_.loop("kh", Expr(p_.kh), [&](Expr kh) {
      const Expr row = b_.let("r", (oh - task_.begin) * Expr(p_.sh) + kh * Expr(p_.dh));
      // Not unrolled: neighbouring taps read the same inputs, which would be kept in registers and spilled.
      b_.loop("kw", Expr(p_.kw), [&](Expr kw) {
        const Expr first = b_.let("first", column + kw * Expr(p_.dw));
        const auto step = [&](const Expr& c) {
          std::vector<Expr> weights;
          for (int v = 0; v < panel_.vectors; ++v)
            weights.push_back(
                b_.let("w", kernel::load(w_, {panel_.index, c, kh, kw, Expr(v * plan_.lanes)}, plan_.lanes)));
          for (int x = 0; x < width; ++x)
            acc.multiply_add(0, x, kernel::load(band_, {c, row, first + Expr(x * p_.sw)}), weights);
        };
        if (!few) return b_.loop("c", Expr(p_.ic), step);
        for (int64_t c = 0; c < p_.ic; ++c) step(Expr(c));
      });
    });
    acc.finish(c_, [&](Expr, Expr x, int v) {
      return Coords{{task_.n, panel_.channel(v), oh, ow + x}, 1, plan_.lanes, panel_.mask(v)};
    });
  }

  LowerContext& c_;
  Builder& b_;
  const Plan& plan_;
  const ConvProblem& p_;
  Buffer x_, w_, band_;
  RowTask task_;
  Panel panel_;
  std::vector<Expr> start_;
};

std::optional<std::string> refuse(const ops::Group& group, const TargetInfo& target) {
  ConvProblem p;
  if (auto r = read_conv(group, p)) return r;
  if (p.groups != 1) return "grouped";
  if (p.ic > 8) return std::to_string(p.ic) + " input channels are more than 8";
  if (auto r = refuse_images(group, target, Image::plain, Image::blocked)) return r;
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
  Conv2dFirstLayer(c, plan).emit();
  return c.finish();
}

}  // namespace

const Schedule kConv2dFirstLayer = {"conv2d_first_layer",
                                    "Convolution of a plain image of at most 8 channels to NCHWc: rows copied with "
                                    "zeros around, tiles of pixels x output "
                                    "channels in registers.",
                                    refuse, prepack, build};

}  // namespace cuvil::schedules
