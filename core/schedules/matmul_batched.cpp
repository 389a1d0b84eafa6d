#include <algorithm>
#include <tuple>

#include "core/base/error.h"
#include "core/schedules/list.h"
#include "core/schedules/matmul_problem.h"
#include "core/schedules/tile.h"
#include "core/schedules/transpose_tile.h"

namespace cuvil::schedules {

namespace {

struct Plan {
  Product p;
  int lanes = 1, rows = 1, vectors = 1;
  int64_t row_chunks = 1;  ///< 0: unknown, see part_of()
};

Plan make_plan(const Product& p, const TargetInfo& target) {
  Plan plan;
  plan.p = p;
  plan.lanes = target.lanes_f32();
  TileDemand demand;
  demand.positions = p.m.as_const().value_or(0);
  const auto n = p.n.as_const(), k = p.k.as_const();
  demand.vectors = n ? (*n + plan.lanes - 1) / plan.lanes : 16;
  if (k && *k * 4 % 4096 == 0) demand.most_positions = 8;
  const TileChoice tile = choose_tile(demand, target);
  plan.rows = tile.positions;
  plan.vectors = tile.vectors;
  const auto m = p.m.as_const();
  if (!m) {
    plan.row_chunks = 0;
  } else {
    const int64_t tiles = std::max<int64_t>(1, (*m + plan.rows - 1) / plan.rows);
    const int64_t wanted = wanted_tasks(target), lead = leading_extent(p);
    if (lead < wanted)
      plan.row_chunks = std::clamp<int64_t>((wanted + lead - 1) / std::max<int64_t>(lead, 1), 1, tiles);
  }
  return plan;
}

/// Emits one kernel. The nest, from outside: task (batch, row chunk), panel of columns, row tile; the whole sum of a
/// tile in registers. B is read in place; a transposed B is turned panel by panel into scratch.
class MatMulBatched {
 public:
  MatMulBatched(LowerContext& c, const Plan& plan)
      : c_(c),
        b_(c.b()),
        plan_(plan),
        p_(plan.p),
        x_(c.in_memory(0)->buffer()),
        y_(c.in_memory(1)->buffer()),
        width_(int64_t{plan.vectors} * plan.lanes) {}

  void emit() {
    n_ = c_.dim(p_.n), k_ = c_.dim(p_.k);
    const Expr tiles = kernel::ceildiv(c_.dim(p_.m), Expr(plan_.rows));
    const Expr chunks = part_count(plan_.row_chunks, tiles);
    b_.phase(leading_extent(c_, p_) * chunks, [&](Expr task) {
      const Expr chunk = b_.let("chunk", task % chunks);
      index_ = split_leading(c_, p_, b_.let("lead", kernel::floordiv(task, chunks)));
      std::tie(tile_begin_, tile_end_) = part_of(b_, "tile", chunk, plan_.row_chunks, tiles);
      if (p_.transposed_b)
        packed_ = b_.alloc("packed", {DType::f32},
                           {kernel::ceildiv(k_, Expr(plan_.lanes)) * Expr(plan_.lanes), Expr(width_)}, Space::scratch);
      const auto n = p_.n.as_const();
      const Expr full = n ? Expr(*n / width_ * width_) : b_.let("full", n_ - n_ % Expr(width_));
      const auto panels = [&] {
        b_.loop(
            "column", Expr(0), full, LoopKind::serial, [&](Expr column) { emit_panel(column, plan_.vectors, false); },
            width_);
      };
      if (!n || *n >= width_) panels();
      if (n && *n % width_ == 0) return;
      if (n) {
        const int64_t rest = *n % width_;
        return emit_panel(Expr(*n - rest), static_cast<int>((rest + plan_.lanes - 1) / plan_.lanes),
                          rest % plan_.lanes != 0);
      }
      b_.branch(full < n_, [&] { emit_panel(full, plan_.vectors, true); });
    });
  }

 private:
  /// The batch index of an operand, axes of extent 1 at 0, followed by two more.
  std::vector<Expr> operand(const ir::Type& type, const Expr& i, const Expr& j) const {
    std::vector<Expr> index;
    const int own = type.rank() - 2, shift = p_.c.rank() - type.rank();
    for (int a = 0; a < own; ++a)
      index.push_back(type.shape[static_cast<size_t>(a)].as_const() == 1 ? Expr(0)
                                                                         : index_[static_cast<size_t>(a + shift)]);
    index.push_back(i);
    index.push_back(j);
    return index;
  }

  void emit_panel(const Expr& column, int vectors, bool masked) {
    column_ = column;
    vectors_ = vectors;
    masks_.assign(static_cast<size_t>(vectors), Expr());
    if (masked)
      for (int v = p_.n.is_const() ? vectors - 1 : 0; v < vectors; ++v)
        masks_[static_cast<size_t>(v)] =
            b_.let("mask", kernel::lane_mask(column + Expr(v * plan_.lanes), n_, plan_.lanes));
    if (p_.transposed_b) pack();
    b_.loop("tile", tile_begin_, tile_end_, LoopKind::serial, [&](Expr tile) {
      cover_row_tile(c_, p_, plan_.rows, tile, [&](const Expr& row, int rows, const Expr&) { emit_tile(row, rows); });
    });
  }

  /// Turns columns [column, column + width) of the transposed B into rows of scratch, a square of vectors at a time.
  void pack() {
    b_.loop(
        "k0", Expr(0), k_, LoopKind::serial,
        [&](Expr k0) {
          const Expr inside = b_.let("inside", kernel::lane_mask(k0, k_, plan_.lanes));
          b_.loop("v", Expr(vectors_), [&](Expr v) {
            std::vector<Expr> rows;
            for (int l = 0; l < plan_.lanes; ++l) {
              // Rows beyond the last are copies of it: their columns are masked off at the store.
              const Expr n = kernel::min(column_ + v * Expr(plan_.lanes) + Expr(l), n_ - Expr(1));
              rows.push_back(b_.let("b", kernel::load(y_, operand(p_.b, n, k0), plan_.lanes, inside)));
            }
            rows = transpose_square(b_, std::move(rows));
            for (int l = 0; l < plan_.lanes; ++l)
              b_.store(packed_, {k0 + Expr(l), v * Expr(plan_.lanes)}, rows[static_cast<size_t>(l)]);
          });
        },
        plan_.lanes);
  }

  void emit_tile(const Expr& row, int rows) {
    RegisterTile acc(b_, 1, rows, vectors_, plan_.lanes);
    acc.fill({});
    const int unroll = p_.k.is_const() ? unroll_factor(p_.k.value(), std::clamp(120 / (rows * vectors_), 1, 4)) : 1;
    b_.loop(
        "k", Expr(0), k_, LoopKind::serial,
        [&](Expr k0) {
          for (int u = 0; u < unroll; ++u) {
            const Expr k = k0 + Expr(u);
            std::vector<Expr> b;
            for (int v = 0; v < vectors_; ++v) {
              const Expr at = Expr(v * plan_.lanes);
              b.push_back(b_.let("b", p_.transposed_b ? kernel::load(packed_, {k, at}, plan_.lanes)
                                                      : kernel::load(y_, operand(p_.b, k, column_ + at), plan_.lanes,
                                                                     masks_[static_cast<size_t>(v)])));
            }
            for (int x = 0; x < rows; ++x) acc.multiply_add(0, x, kernel::load(x_, operand(p_.a, row + Expr(x), k)), b);
          }
        },
        unroll);
    acc.finish(c_, [&](Expr, Expr x, int v) {
      std::vector<Expr> index = index_;
      index[static_cast<size_t>(p_.row_axis)] = row + x;
      index.back() = column_ + Expr(v * plan_.lanes);
      return Coords{index, p_.c.rank() - 1, plan_.lanes, masks_[static_cast<size_t>(v)]};
    });
  }

  LowerContext& c_;
  Builder& b_;
  const Plan& plan_;
  const Product& p_;
  Buffer x_, y_, packed_;
  int64_t width_;
  Expr n_, k_, tile_begin_, tile_end_, column_;
  std::vector<Expr> index_;  ///< of the leading axes
  std::vector<Expr> masks_;
  int vectors_ = 1;
};

std::optional<std::string> refuse(const ops::Group& group, const TargetInfo&) {
  Product p;
  if (auto r = read_product(group, true, p)) return r;
  if (!p.b.layout.is_plain()) return "the second operand is not in plain layout";
  if (!reads_memory(group, 0) || !reads_memory(group, 1)) return "a producer is fused in front of it";
  return {};
}

kernel::Kernel build(const ops::Group& group, const TargetInfo& target, std::string kernel_name) {
  Product p;
  CUVIL_CHECK(!read_product(group, true, p), "a matrix product that was refused");
  const Plan plan = make_plan(p, target);
  LowerContext c(group, target, std::move(kernel_name));
  MatMulBatched(c, plan).emit();
  return c.finish();
}

}  // namespace

const Schedule kMatMulBatched = {"matmul_batched",
                                 "Products of computed matrices, batch by batch: row tiles in registers over the whole "
                                 "sum, the second operand read in "
                                 "place or turned in scratch.",
                                 refuse, nullptr, build};

}  // namespace cuvil::schedules
