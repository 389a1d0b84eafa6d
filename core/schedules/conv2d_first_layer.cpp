#include <algorithm>

#include "core/base/error.h"
#include "core/ops/loops.h"
#include "core/schedules/conv_problem.h"
#include "core/schedules/list.h"
#include "core/schedules/tile.h"

namespace cuvil::schedules {

using kernel::Buffer;
using kernel::Builder;
using kernel::Expr;
using kernel::LoopKind;
using kernel::Space;
using ops::Coords;
using ops::LowerContext;

namespace {

constexpr int64_t kRowsPerTask = 4;

struct Plan {
  ConvProblem p;
  int lanes = 1, width = 1, vectors = 1;
  int64_t panels = 1;
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
  plan.vectors = tile.vectors;
  plan.panels = (demand.vectors + plan.vectors - 1) / plan.vectors;
  plan.weights.blocks = {{0, plan.vectors * plan.lanes}};
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
    const Expr n = c_.dim(p_.n), oh = c_.dim(p_.oh), ow = c_.dim(p_.ow), h = c_.dim(p_.h), w = c_.dim(p_.w);
    const Expr chunks = kernel::ceildiv(oh, Expr(kRowsPerTask));
    const int64_t rows = (kRowsPerTask - 1) * p_.sh + (p_.kh - 1) * p_.dh + 1;
    const Expr columns = (ow - Expr(1)) * Expr(p_.sw) + Expr((p_.kw - 1) * p_.dw + 1);
    b_.phase(n * chunks, [&](Expr task) {
      const Expr chunk = b_.let("chunk", task % chunks);
      n_ = b_.let("n", kernel::floordiv(task, chunks));
      begin_ = b_.let("row_begin", chunk * Expr(kRowsPerTask));
      const Expr end = b_.let("row_end", kernel::min(oh, begin_ + Expr(kRowsPerTask)));
      band_ = b_.alloc("band", {DType::f32}, {Expr(p_.ic), Expr(rows), columns}, Space::scratch);
      b_.loop("c", Expr(p_.ic),
              [&](Expr c) { b_.loop("r", Expr(rows), [&](Expr r) { copy_row(c, r, h, w, columns); }); });
      b_.loop("panel", Expr(plan_.panels), [&](Expr panel) {
        panel_ = panel;
        emit_panel(end, ow);
      });
    });
  }

 private:
  void copy_row(const Expr& c, const Expr& r, const Expr& h, const Expr& w, const Expr& columns) {
    const Expr ih = b_.let("ih", begin_ * Expr(p_.sh) - Expr(p_.pt) + r);
    // The part of the image that the band holds; taps of no output may lie beyond.
    const Expr left = kernel::min(Expr(p_.pl), columns);
    const Expr width = b_.let("width", kernel::min(w, columns - left));
    b_.branch((ih >= Expr(0)) & (ih < h),
              [&] {
                zero(c, r, Expr(0), left);
                vectors(width, [&](const Expr& x, const Expr& mask) {
                  b_.store(band_, {c, r, x + left}, kernel::load(x_, {n_, c, ih, x}, plan_.lanes, mask), mask);
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

  void emit_panel(const Expr& end, const Expr& ow) {
    const int64_t width = int64_t{plan_.vectors} * plan_.lanes;
    const int64_t full = p_.oc / width, rest = p_.oc % width;
    const int rest_vectors = static_cast<int>((rest + plan_.lanes - 1) / plan_.lanes);
    const int rest_lanes = static_cast<int>(p_.oc % plan_.lanes);
    if (rest == 0) return emit_rows(plan_.vectors, 0, end, ow);
    if (full == 0) return emit_rows(rest_vectors, rest_lanes, end, ow);
    b_.branch(
        panel_ < Expr(full), [&] { emit_rows(plan_.vectors, 0, end, ow); },
        [&] { emit_rows(rest_vectors, rest_lanes, end, ow); });
  }

  void emit_rows(int vectors, int last_lanes, const Expr& end, const Expr& ow) {
    vectors_ = vectors;
    last_mask_ = last_lanes ? kernel::lane_mask(Expr(0), Expr(last_lanes), plan_.lanes) : Expr();
    start_.clear();
    if (p_.bias)
      for (int v = 0; v < vectors; ++v)
        start_.push_back(b_.let("bias", c_.load(2, Coords{{channel(v)}, 0, plan_.lanes, mask(v)})));
    b_.loop("oh", begin_, end, LoopKind::serial, [&](Expr oh) {
      cover(b_, Expr(0), ow, plan_.width, [&](const Expr& at, int width) { emit_tile(oh, at, width); });
    });
  }

  void emit_tile(const Expr& oh, const Expr& ow, int width) {
    RegisterTile acc(b_, 1, width, vectors_, plan_.lanes);
    acc.fill(start_);
    const Expr column = b_.let("column", ow * Expr(p_.sw));
    const bool few = p_.ic <= 4;
    b_.loop("kh", Expr(p_.kh), [&](Expr kh) {
      const Expr row = b_.let("r", (oh - begin_) * Expr(p_.sh) + kh * Expr(p_.dh));
      // Not unrolled: neighbouring taps read the same inputs, which would be kept in registers and spilled.
      b_.loop("kw", Expr(p_.kw), [&](Expr kw) {
        const Expr first = b_.let("first", column + kw * Expr(p_.dw));
        const auto step = [&](const Expr& c) {
          std::vector<Expr> weights;
          for (int v = 0; v < vectors_; ++v)
            weights.push_back(b_.let("w", kernel::load(w_, {panel_, c, kh, kw, Expr(v * plan_.lanes)}, plan_.lanes)));
          for (int x = 0; x < width; ++x)
            acc.multiply_add(0, x, kernel::load(band_, {c, row, first + Expr(x * p_.sw)}), weights);
        };
        if (!few) return b_.loop("c", Expr(p_.ic), step);
        for (int64_t c = 0; c < p_.ic; ++c) step(Expr(c));
      });
    });
    acc.finish(c_, [&](Expr, Expr x, int v) { return Coords{{n_, channel(v), oh, ow + x}, 1, plan_.lanes, mask(v)}; });
  }

  Expr channel(int v) const { return (panel_ * Expr(plan_.vectors) + Expr(v)) * Expr(plan_.lanes); }
  Expr mask(int v) const { return v + 1 == vectors_ ? last_mask_ : Expr(); }

  LowerContext& c_;
  Builder& b_;
  const Plan& plan_;
  const ConvProblem& p_;
  Buffer x_, w_, band_;
  Expr n_, begin_, panel_, last_mask_;
  std::vector<Expr> start_;
  int vectors_ = 1;
};

std::optional<std::string> refuse(const ops::Group& group, const TargetInfo& target) {
  if (!group.anchor || group.anchor->op != "Conv2D") return "not a convolution";
  ConvProblem p;
  if (auto r = read_conv(group, p)) return r;
  if (p.groups != 1) return "grouped";
  if (p.ic > 8) return std::to_string(p.ic) + " input channels are more than 8";
  const ir::Layout blocked = ir::Layout::nchwc(4, target.lanes_f32());
  if (!group.anchor->input(0)->type.layout.is_plain()) return "the input is not in plain layout";
  if (stored_type(group).layout != blocked) return "the output is not blocked as " + blocked.str(4);
  if (!reads_memory(group, 0) || !reads_memory(group, 1)) return "a producer is fused in front of it";
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
