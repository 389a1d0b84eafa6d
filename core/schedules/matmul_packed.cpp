#include <algorithm>
#include <tuple>

#include "core/base/error.h"
#include "core/schedules/list.h"
#include "core/schedules/matmul_problem.h"
#include "core/schedules/panels.h"
#include "core/schedules/tile.h"

namespace cuvil::schedules {

namespace {

struct Plan {
  Product p;
  int64_t n = 0, k = 0;
  int lanes = 1;
  int rows = 1;  ///< of a tile
  Panels panels;
  int64_t k_block = 0;     ///< length of a block of the sum; k if there is one
  int64_t row_chunks = 1;  ///< 0: unknown, see part_of()
  int64_t panel_groups = 1;
  ir::Layout weights;  ///< [panel][k][lane]
};

void choose_tasks(Plan& plan, int64_t lead, const TargetInfo& target) {
  const int64_t wanted = wanted_tasks(target), panels = plan.panels.count();
  const int64_t weight_bytes = plan.k * plan.n * 4;
  const auto m = plan.p.m.as_const();
  if (!m) {
    plan.row_chunks = 0;
    plan.panel_groups = weight_bytes > target.l2_bytes / 4 ? std::min(panels, wanted) : 1;
    return;
  }
  const int64_t tiles = (*m + plan.rows - 1) / plan.rows;
  const int64_t rows_bytes = *m * plan.k_block * 4;
  const int64_t room = target.l2_bytes / 2;
  plan.row_chunks = std::clamp<int64_t>((rows_bytes + room - 1) / room, 1, std::max<int64_t>(tiles, 1));
  const auto missing = [&] {
    const int64_t have = lead * plan.row_chunks * plan.panel_groups;
    return (wanted + have - 1) / have;
  };
  const auto split_rows = [&] { plan.row_chunks = std::min(std::max<int64_t>(tiles, 1), plan.row_chunks * missing()); };
  const auto split_panels = [&] { plan.panel_groups = std::min(panels, plan.panel_groups * missing()); };
  if (plan.n > 288 && weight_bytes > *m * plan.k * 4 / 2) {
    split_panels();
    split_rows();
  } else {
    split_rows();
    split_panels();
  }
}

Plan make_plan(const Product& p, const TargetInfo& target) {
  Plan plan;
  plan.p = p;
  plan.n = p.n.value(), plan.k = p.k.value();
  plan.lanes = target.lanes_f32();
  TileDemand demand;
  demand.positions = p.m.as_const().value_or(0);
  demand.vectors = (plan.n + plan.lanes - 1) / plan.lanes;
  // Rows a multiple of 4 KiB apart share the sets of the first-level cache: no more of them than its ways.
  if (plan.k * 4 % 4096 == 0) demand.most_positions = 8;
  const TileChoice tile = choose_tile(demand, target);
  plan.rows = tile.positions;
  plan.panels = {plan.n, tile.vectors, plan.lanes};
  if (!p.transposed_b) plan.weights.order = {1, 0};
  plan.weights.blocks = {{p.transposed_b ? 0 : 1, static_cast<int>(plan.panels.width())}};
  plan.k_block = plan.k;
  // A long sum in one go would read the rows from beyond L2 again for every panel.
  const int64_t rows = p.m.as_const().value_or(128);
  if (plan.k > 1024 && rows > 2 * plan.rows && rows * plan.k * 4 > target.l2_bytes / 4) {
    const int64_t blocks = (plan.k + 767) / 768;
    plan.k_block = ((plan.k + blocks - 1) / blocks + 15) / 16 * 16;
  }
  choose_tasks(plan, std::max<int64_t>(leading_extent(p), 1), target);
  return plan;
}

/// Emits one kernel. The nest, from outside: task (leading axes, row chunk, panel group), block of the sum, weight
/// panel, row tile; inside a tile the block's sum is in registers. Sums of earlier blocks wait in scratch.
class MatMulPacked {
 public:
  MatMulPacked(LowerContext& c, const Plan& plan)
      : c_(c),
        b_(c.b()),
        plan_(plan),
        p_(plan.p),
        a_(c.in_memory(0)->buffer()),
        w_(c.in_memory(1)->buffer()),
        blocks_((plan_.k + plan.k_block - 1) / plan.k_block) {}

  void emit() {
    const Expr groups(plan_.panel_groups);
    const Expr tiles = kernel::ceildiv(c_.dim(p_.m), Expr(plan_.rows));
    const Expr chunks = part_count(plan_.row_chunks, tiles);
    b_.phase(leading_extent(c_, p_) * chunks * groups, [&](Expr task) {
      const Expr group = b_.let("group", task % groups);
      const Expr chunk = b_.let("chunk", kernel::floordiv(task, groups) % chunks);
      index_ = split_leading(c_, p_, b_.let("lead", kernel::floordiv(task, groups * chunks)));
      std::tie(tile_begin_, tile_end_) = part_of(b_, "tile", chunk, plan_.row_chunks, tiles);
      Expr panel_end;
      std::tie(panel_begin_, panel_end) = part_of(b_, "panel", group, plan_.panel_groups, Expr(plan_.panels.count()));
      const auto panels = [&] {
        b_.loop("panel", panel_begin_, panel_end, LoopKind::serial, [&](Expr index) {
          emit_panel(b_, plan_.panels, index, [&](const Panel& panel) { emit_tiles(panel); });
        });
      };
      if (blocks_ == 1) {
        k_begin_ = Expr(0), k_end_ = Expr(plan_.k);
        return panels();
      }
      const int64_t chunk_tiles =
          plan_.row_chunks ? ((p_.m.value() + plan_.rows - 1) / plan_.rows + plan_.row_chunks - 1) / plan_.row_chunks
                           : kSymbolicPart;
      const int64_t group_panels = (plan_.panels.count() + plan_.panel_groups - 1) / plan_.panel_groups;
      partial_ =
          b_.alloc("partial", {DType::f32},
                   {Expr(group_panels), Expr(chunk_tiles), Expr(plan_.rows * plan_.panels.width())}, Space::scratch);
      b_.loop("k_block", Expr(blocks_), [&](Expr block) {
        block_ = block;
        k_begin_ = b_.let("k_begin", block * Expr(plan_.k_block));
        k_end_ = b_.let("k_end", kernel::min(Expr(plan_.k), k_begin_ + Expr(plan_.k_block)));
        panels();
      });
    });
  }

 private:
  void emit_tiles(const Panel& panel) {
    panel_ = panel;
    plan_prefetch();
    b_.loop("tile", tile_begin_, tile_end_, LoopKind::serial, [&](Expr tile) {
      tile_ = tile;
      cover_row_tile(c_, p_, plan_.rows, tile,
                     [&](const Expr& row, int rows, const Expr& before) { emit_tile(row, rows, before); });
    });
  }

  /// `slot`: the tile's first row within its full tile, where its sums wait.
  void emit_tile(const Expr& row, int rows, const Expr& slot) {
    RegisterTile acc(b_, 1, rows, panel_.vectors, plan_.lanes);
    const int unroll = unroll_factor(plan_.k, std::clamp(160 / (rows * panel_.vectors), 1, 8));
    const auto waiting = [&](int x, int v) {
      return std::vector<Expr>{panel_.index - panel_begin_, tile_ - tile_begin_,
                               ((slot + Expr(x)) * Expr(plan_.panels.vectors) + Expr(v)) * Expr(plan_.lanes)};
    };
    acc.fill({});
    if (blocks_ > 1)
      b_.branch(block_ > Expr(0), [&] {
        for (int x = 0; x < rows; ++x)
          for (int v = 0; v < panel_.vectors; ++v) acc.set(0, x, v, kernel::load(partial_, waiting(x, v), plan_.lanes));
      });
    b_.loop(
        "k", k_begin_, k_end_, LoopKind::serial,
        [&](Expr k0) {
          for (int u = 0; u < unroll; ++u) {
            const Expr k = k0 + Expr(u);
            std::vector<Expr> weights;
            for (int v = 0; v < panel_.vectors; ++v)
              weights.push_back(b_.let("w", kernel::load(w_, {panel_.index, k, Expr(v * plan_.lanes)}, plan_.lanes)));
            for (int i = 0; i < prefetch_.lines_per_step; ++i)
              b_.prefetch(w_, {panel_.index + Expr(1), k, prefetch_.at(tile_ - tile_begin_, i)}, 2);
            for (int x = 0; x < rows; ++x) {
              std::vector<Expr> index = index_;
              index[static_cast<size_t>(p_.row_axis)] = row + Expr(x);
              index.back() = k;
              acc.multiply_add(0, x, kernel::load(a_, index), weights);
            }
          }
        },
        unroll);
    const auto finish = [&] {
      acc.finish(c_, [&](Expr, Expr x, int v) {
        std::vector<Expr> index = index_;
        index[static_cast<size_t>(p_.row_axis)] = row + x;
        index.back() = panel_.channel(v);
        return Coords{index, p_.c.rank() - 1, plan_.lanes, panel_.mask(v)};
      });
    };
    if (blocks_ == 1) return finish();
    b_.branch(block_ == Expr(blocks_ - 1), finish, [&] {
      for (int x = 0; x < rows; ++x)
        for (int v = 0; v < panel_.vectors; ++v) b_.store(partial_, waiting(x, v), acc.get(0, x, v));
    });
  }

  void plan_prefetch() {
    std::optional<int64_t> tiles;  // per task
    if (plan_.row_chunks) tiles = (p_.m.value() + plan_.rows - 1) / plan_.rows / plan_.row_chunks;
    prefetch_ = {plan_.panels.count(), plan_.k * plan_.n * 4, plan_.panels.width(), tiles};
  }

  LowerContext& c_;
  Builder& b_;
  const Plan& plan_;
  const Product& p_;
  Buffer a_, w_, partial_;
  int64_t blocks_;
  Expr tile_begin_, tile_end_, panel_begin_, tile_, block_, k_begin_, k_end_;
  std::vector<Expr> index_;  ///< of the leading axes
  Panel panel_;
  PanelPrefetch prefetch_;
};

std::optional<std::string> refuse(const ops::Group& group, const TargetInfo& target) {
  Product p;
  if (auto r = read_product(group, false, p)) return r;
  if (!reads_memory(group, 0) || !reads_memory(group, 1)) return "a producer is fused in front of it";
  return refuse_weight(group, 1, make_plan(p, target).weights);
}

std::vector<Prepack> prepack(const ops::Group& group, const TargetInfo& target) {
  Product p;
  if (read_product(group, false, p)) return {};
  return {{1, make_plan(p, target).weights}};
}

kernel::Kernel build(const ops::Group& group, const TargetInfo& target, std::string kernel_name) {
  Product p;
  CUVIL_CHECK(!read_product(group, false, p), "a matrix product that was refused");
  const Plan plan = make_plan(p, target);
  LowerContext c(group, target, std::move(kernel_name));
  MatMulPacked(c, plan).emit();
  return c.finish();
}

}  // namespace

const Schedule kMatMulPacked = {
    "matmul_packed",
    "Rows times a constant matrix packed in panels of columns: row tiles in registers over blocks of the sum, the next "
    "panel prefetched.",
    refuse, prepack, build};

}  // namespace cuvil::schedules
