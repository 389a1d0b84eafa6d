#include <algorithm>

#include "core/base/error.h"
#include "core/schedules/list.h"
#include "core/schedules/matmul_problem.h"
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

constexpr int64_t kSymbolicTiles = 8;  ///< row tiles per task where the number of rows is symbolic

struct Plan {
  Product p;
  int64_t n = 0, k = 0;
  int lanes = 1, rows = 1, vectors = 1;
  int64_t panels = 1;
  int64_t k_block = 0;     ///< length of a block of the sum; k if there is one
  int64_t row_chunks = 1;  ///< 0: kSymbolicTiles tiles each
  int64_t panel_groups = 1;
  ir::Layout weights;  ///< [panel][k][lane]
};

void choose_tasks(Plan& plan, int64_t lead, const TargetInfo& target) {
  const int64_t wanted = wanted_tasks(target);
  const int64_t weight_bytes = plan.k * plan.n * 4;
  const auto m = plan.p.m.as_const();
  if (!m) {
    plan.row_chunks = 0;
    plan.panel_groups = weight_bytes > target.l2_bytes / 4 ? std::min(plan.panels, wanted) : 1;
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
  const auto split_panels = [&] { plan.panel_groups = std::min(plan.panels, plan.panel_groups * missing()); };
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
  plan.vectors = tile.vectors;
  plan.panels = (demand.vectors + plan.vectors - 1) / plan.vectors;
  if (!p.transposed_b) plan.weights.order = {1, 0};
  plan.weights.blocks = {{p.transposed_b ? 0 : 1, plan.vectors * plan.lanes}};
  plan.k_block = plan.k;
  // A long sum in one go would read the rows from beyond L2 again for every panel.
  const int64_t rows = p.m.as_const().value_or(128);
  if (plan.k > 1024 && rows > 2 * plan.rows && rows * plan.k * 4 > target.l2_bytes / 4) {
    const int64_t blocks = (plan.k + 767) / 768;
    plan.k_block = ((plan.k + blocks - 1) / blocks + 15) / 16 * 16;
  }
  int64_t lead = 1;
  for (int a = 0; a + 1 < p.c.rank(); ++a)
    if (a != p.row_axis) lead *= p.c.shape[static_cast<size_t>(a)].as_const().value_or(1);
  choose_tasks(plan, std::max<int64_t>(lead, 1), target);
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
    m_ = c_.dim(p_.m);
    const Expr groups(plan_.panel_groups);
    const Expr tiles = kernel::ceildiv(m_, Expr(plan_.rows));
    const Expr chunks = plan_.row_chunks ? Expr(plan_.row_chunks) : kernel::ceildiv(tiles, Expr(kSymbolicTiles));
    Expr lead(1);
    for (int a = 0; a + 1 < p_.c.rank(); ++a)
      if (a != p_.row_axis) lead = lead * c_.dim(p_.c.shape[static_cast<size_t>(a)]);
    b_.phase(lead * chunks * groups, [&](Expr task) {
      const Expr group = b_.let("group", task % groups);
      const Expr chunk = b_.let("chunk", kernel::floordiv(task, groups) % chunks);
      split_lead(b_.let("lead", kernel::floordiv(task, groups * chunks)));
      if (plan_.row_chunks) {
        tile_begin_ = b_.let("tile_begin", part_begin(chunk, plan_.row_chunks, tiles));
        tile_end_ = b_.let("tile_end", part_begin(chunk + Expr(1), plan_.row_chunks, tiles));
      } else {
        tile_begin_ = b_.let("tile_begin", chunk * Expr(kSymbolicTiles));
        tile_end_ = b_.let("tile_end", kernel::min(tiles, tile_begin_ + Expr(kSymbolicTiles)));
      }
      panel_begin_ = b_.let("panel_begin", part_begin(group, plan_.panel_groups, Expr(plan_.panels)));
      const Expr panel_end = b_.let("panel_end", part_begin(group + Expr(1), plan_.panel_groups, Expr(plan_.panels)));
      const auto panels = [&] {
        b_.loop("panel", panel_begin_, panel_end, LoopKind::serial, [&](Expr panel) { emit_panel(panel); });
      };
      if (blocks_ == 1) {
        k_begin_ = Expr(0), k_end_ = Expr(plan_.k);
        return panels();
      }
      const int64_t chunk_tiles =
          plan_.row_chunks ? ((p_.m.value() + plan_.rows - 1) / plan_.rows + plan_.row_chunks - 1) / plan_.row_chunks
                           : kSymbolicTiles;
      const int64_t group_panels = (plan_.panels + plan_.panel_groups - 1) / plan_.panel_groups;
      partial_ = b_.alloc("partial", {DType::f32},
                          {Expr(group_panels), Expr(chunk_tiles), Expr(plan_.rows * plan_.vectors * plan_.lanes)},
                          Space::scratch);
      b_.loop("k_block", Expr(blocks_), [&](Expr block) {
        block_ = block;
        k_begin_ = b_.let("k_begin", block * Expr(plan_.k_block));
        k_end_ = b_.let("k_end", kernel::min(Expr(plan_.k), k_begin_ + Expr(plan_.k_block)));
        panels();
      });
    });
  }

 private:
  void split_lead(Expr lead) {
    index_.assign(static_cast<size_t>(p_.c.rank()), Expr(0));
    int outermost = -1;
    for (int a = 0; a + 1 < p_.c.rank() && outermost < 0; ++a)
      if (a != p_.row_axis) outermost = a;
    for (int a = p_.c.rank() - 2; a >= 0; --a) {
      if (a == p_.row_axis || p_.c.shape[static_cast<size_t>(a)].as_const() == 1) continue;
      const Expr extent = c_.dim(p_.c.shape[static_cast<size_t>(a)]);
      index_[static_cast<size_t>(a)] = b_.let("i", a == outermost ? lead : lead % extent);
      if (a != outermost) lead = kernel::floordiv(lead, extent);
    }
  }

  void emit_panel(Expr panel) {
    panel_ = panel;
    const int64_t width = int64_t{plan_.vectors} * plan_.lanes;
    const int64_t full = plan_.n / width, rest = plan_.n % width;
    const int rest_vectors = static_cast<int>((rest + plan_.lanes - 1) / plan_.lanes);
    const int rest_lanes = static_cast<int>(plan_.n % plan_.lanes);
    if (rest == 0) return emit_tiles(plan_.vectors, 0);
    if (full == 0) return emit_tiles(rest_vectors, rest_lanes);
    b_.branch(panel < Expr(full), [&] { emit_tiles(plan_.vectors, 0); }, [&] { emit_tiles(rest_vectors, rest_lanes); });
  }

  void emit_tiles(int vectors, int last_lanes) {
    vectors_ = vectors;
    last_mask_ = last_lanes ? kernel::lane_mask(Expr(0), Expr(last_lanes), plan_.lanes) : Expr();
    plan_prefetch();
    b_.loop("tile", tile_begin_, tile_end_, LoopKind::serial, [&](Expr tile) {
      tile_ = tile;
      const Expr row = b_.let("row", tile * Expr(plan_.rows));
      const auto m = p_.m.as_const();
      if (m && *m % plan_.rows == 0) return emit_tile(row, plan_.rows, Expr(0));
      if (m && *m < plan_.rows) return emit_tile(row, static_cast<int>(*m), Expr(0));
      b_.branch(
          row + Expr(plan_.rows) <= m_, [&] { emit_tile(row, plan_.rows, Expr(0)); },
          [&] {
            if (m) return emit_tile(row, static_cast<int>(*m % plan_.rows), Expr(0));
            for (int rows : remainder_ladder(plan_.rows)) {
              const Expr rest = m_ - row;
              // The bits of the rest, highest first, say which tiles cover it.
              const Expr before = rest - rest % Expr(2 * rows);
              b_.branch(rest % Expr(2 * rows) >= Expr(rows), [&] { emit_tile(row + before, rows, before); });
            }
          });
    });
  }

  /// `slot`: the tile's first row within its full tile, where its sums wait.
  void emit_tile(const Expr& row, int rows, const Expr& slot) {
    RegisterTile acc(b_, 1, rows, vectors_, plan_.lanes);
    const int unroll = unroll_factor(plan_.k, std::clamp(160 / (rows * vectors_), 1, 8));
    const auto waiting = [&](int x, int v) {
      return std::vector<Expr>{panel_ - panel_begin_, tile_ - tile_begin_,
                               ((slot + Expr(x)) * Expr(plan_.vectors) + Expr(v)) * Expr(plan_.lanes)};
    };
    acc.fill({});
    if (blocks_ > 1)
      b_.branch(block_ > Expr(0), [&] {
        for (int x = 0; x < rows; ++x)
          for (int v = 0; v < vectors_; ++v) acc.set(0, x, v, kernel::load(partial_, waiting(x, v), plan_.lanes));
      });
    b_.loop(
        "k", k_begin_, k_end_, LoopKind::serial,
        [&](Expr k0) {
          for (int u = 0; u < unroll; ++u) {
            const Expr k = k0 + Expr(u);
            std::vector<Expr> weights;
            for (int v = 0; v < vectors_; ++v)
              weights.push_back(b_.let("w", kernel::load(w_, {panel_, k, Expr(v * plan_.lanes)}, plan_.lanes)));
            for (int i = 0; i < lines_per_step_; ++i)
              b_.prefetch(w_, {panel_ + Expr(1), k, prefetch_at() + Expr(16 * i)}, 2);
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
        index.back() = (panel_ * Expr(plan_.vectors) + Expr(v)) * Expr(plan_.lanes);
        return Coords{index, p_.c.rank() - 1, plan_.lanes, v + 1 == vectors_ ? last_mask_ : Expr()};
      });
    };
    if (blocks_ == 1) return finish();
    b_.branch(block_ == Expr(blocks_ - 1), finish, [&] {
      for (int x = 0; x < rows; ++x)
        for (int v = 0; v < vectors_; ++v) b_.store(partial_, waiting(x, v), acc.get(0, x, v));
    });
  }

  /// The next weight panel goes to L2 while this one is used, one cache line per step and row tile.
  void plan_prefetch() {
    lines_per_step_ = 0;
    if (plan_.panels < 2 || plan_.k * plan_.n * 4 < (128 << 10)) return;
    const int64_t lines = std::max<int64_t>(1, int64_t{plan_.vectors} * plan_.lanes / 16);
    int64_t tiles = kSymbolicTiles;
    if (plan_.row_chunks) tiles = std::max<int64_t>(1, (p_.m.value() + plan_.rows - 1) / plan_.rows / plan_.row_chunks);
    lines_per_step_ = static_cast<int>((lines + tiles - 1) / tiles);
    prefetch_steps_ = (lines + lines_per_step_ - 1) / lines_per_step_;
  }
  Expr prefetch_at() const {
    if (prefetch_steps_ == 1) return Expr(0);
    return kernel::min(tile_ - tile_begin_, Expr(prefetch_steps_ - 1)) * Expr(16 * lines_per_step_);
  }

  LowerContext& c_;
  Builder& b_;
  const Plan& plan_;
  const Product& p_;
  Buffer a_, w_, partial_;
  int64_t blocks_;
  Expr m_, tile_begin_, tile_end_, panel_begin_, panel_, tile_, block_, k_begin_, k_end_, last_mask_;
  std::vector<Expr> index_;
  int vectors_ = 1, lines_per_step_ = 0;
  int64_t prefetch_steps_ = 1;
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
