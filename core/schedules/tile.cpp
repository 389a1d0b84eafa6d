#include "core/schedules/tile.h"

#include <algorithm>

#include "core/base/error.h"

namespace cuvil::schedules {

using kernel::Buffer;
using kernel::Builder;
using kernel::Expr;
using kernel::Space;
using kernel::Type;

RegisterTile::RegisterTile(Builder& b, int height, int width, int vectors, int lanes)
    : b_(b),
      height_(height),
      width_(width),
      vectors_(vectors),
      lanes_(lanes),
      acc_(b.alloc("acc", Type{DType::f32, static_cast<uint16_t>(lanes)}, {Expr(int64_t{height} * width * vectors)},
                   Space::reg)) {}

Expr RegisterTile::get(int y, int x, int v) const { return kernel::load(acc_, {Expr(slot(y, x, v))}); }

void RegisterTile::set(int y, int x, int v, Expr value) { b_.store(acc_, {Expr(slot(y, x, v))}, std::move(value)); }

void RegisterTile::multiply_add(int y, int x, const Expr& a, const std::vector<Expr>& b) {
  const Expr spread = b_.let("a", kernel::broadcast(a, lanes_));
  for (int v = 0; v < vectors_; ++v) set(y, x, v, kernel::fma(spread, b[static_cast<size_t>(v)], get(y, x, v)));
}

void RegisterTile::fill(const std::vector<Expr>& start) {
  const Expr zero = kernel::constant({DType::f32, static_cast<uint16_t>(lanes_)}, 0);
  for (int y = 0; y < height_; ++y)
    for (int x = 0; x < width_; ++x)
      for (int v = 0; v < vectors_; ++v) set(y, x, v, start.empty() ? zero : start[static_cast<size_t>(v)]);
}

void RegisterTile::finish(ops::LowerContext& c, const At& at) const {
  constexpr int kCheap = 8;  // instructions per vector that may be repeated for every accumulator
  const int count = height_ * width_ * vectors_;
  if (count <= 2 || epilogue_cost(c.group()) <= kCheap) {
    for (int y = 0; y < height_; ++y)
      for (int x = 0; x < width_; ++x)
        for (int v = 0; v < vectors_; ++v) c.store(at(Expr(y), Expr(x), v), get(y, x, v));
    return;
  }
  const Buffer tile =
      b_.alloc("tile", {DType::f32}, {Expr(height_), Expr(width_), Expr(vectors_ * lanes_)}, Space::scratch);
  for (int y = 0; y < height_; ++y)
    for (int x = 0; x < width_; ++x)
      for (int v = 0; v < vectors_; ++v) b_.store(tile, {Expr(y), Expr(x), Expr(v * lanes_)}, get(y, x, v));
  b_.loop("y", Expr(height_), [&](Expr y) {
    b_.loop("x", Expr(width_), [&](Expr x) {
      for (int v = 0; v < vectors_; ++v) c.store(at(y, x, v), kernel::load(tile, {y, x, Expr(v * lanes_)}, lanes_));
    });
  });
}

int max_positions(int vectors, const TargetInfo& target) {
  // One register per accumulator, one per weight vector, one for the broadcast, one to spare.
  const int free = target.vector_registers - vectors - (vectors == 1 ? 1 : 2);
  return std::max(1, std::min(free / vectors, 28));
}

TileChoice choose_tile(const TileDemand& d, const TargetInfo& target) {
  // Cycles of one step of the contraction for a tile: two FMAs and two loads issue per cycle, a chain takes four.
  const auto step = [](int64_t p, int64_t v) {
    return std::max({0.5 * static_cast<double>(p * v), 0.5 * static_cast<double>(p + v), 4.0}) + 0.4;
  };
  TileChoice best;
  for (int v = 1; v <= std::min<int64_t>(d.vectors, 8); ++v) {
    if (d.whole_panels && d.vectors % v != 0) continue;
    if (v > 1 && 2 * v + 1 > target.vector_registers) break;
    const int most = std::min(d.most_positions, max_positions(v, target));
    for (int p = most; p >= std::max(1, most / 2); --p) {
      if (p % d.multiple != 0) continue;
      const int64_t line = d.positions > 0 ? d.positions : 8 * int64_t{most};
      const int width = static_cast<int>(std::min<int64_t>(p, line));
      const auto row = [&](int64_t w) {
        const int64_t tail = line % width;
        return static_cast<double>(line / width) * step(width, w) + (tail ? step(tail, w) : 0.0);
      };
      const int64_t last = d.vectors % v;
      double cycles = static_cast<double>(d.vectors / v) * row(v) + (last ? row(last) : 0.0);
      cycles *= static_cast<double>(d.lines);
      // A second variant of the code for a remainder costs compile time and instruction cache.
      if (last) cycles *= 1.03;
      if (line % width) cycles *= 1.01;
      if (best.cycles == 0 || cycles < best.cycles * 0.999) best = {width, v, cycles};
    }
  }
  return best;
}

Expr part_count(int64_t parts, const Expr& extent) {
  return parts ? Expr(parts) : kernel::ceildiv(extent, Expr(kSymbolicPart));
}

std::pair<Expr, Expr> part_of(Builder& b, const std::string& name, const Expr& i, int64_t parts, const Expr& extent) {
  if (parts == 0) {
    const Expr begin = b.let(name + "_begin", i * Expr(kSymbolicPart));
    return {begin, b.let(name + "_end", kernel::min(extent, begin + Expr(kSymbolicPart)))};
  }
  const auto start = [&](const Expr& part) {
    return parts == 1 ? part * extent : kernel::floordiv(part * extent, Expr(parts));
  };
  const Expr begin = b.let(name + "_begin", start(i));
  return {begin, b.let(name + "_end", start(i + Expr(1)))};
}

std::vector<int> remainder_ladder(int width) {
  std::vector<int> ladder;
  int w = 1;
  while (w * 2 < width) w *= 2;
  for (; w >= 1 && w < width; w /= 2) ladder.push_back(w);
  return ladder;
}

void cover(Builder& b, const Expr& begin, const Expr& end, int width,
           const std::function<void(const Expr& at, int width)>& body) {
  const auto run = [&](const Expr& from, const Expr& count, int w) {
    if (count.is_const_int(0)) return;
    if (count.is_const_int(1)) return body(from, w);
    b.loop("i", count, [&](Expr i) { body(b.let("at", from + i * Expr(w)), w); });
  };
  if (begin->op == kernel::Op::const_int && end->op == kernel::Op::const_int) {
    const int64_t from = begin->int_value, to = end->int_value;
    const int64_t count = std::max<int64_t>(0, to - from) / width;
    run(begin, Expr(count), width);
    const int64_t rest = to - from - count * width;
    if (rest > 0) body(Expr(from + count * width), static_cast<int>(rest));
    return;
  }
  std::vector<int> widths = remainder_ladder(width);
  widths.insert(widths.begin(), width);
  Expr at = begin;
  for (int w : widths) {
    const Expr count = b.let("count", kernel::floordiv(end - at, Expr(w)));
    run(at, count, w);
    at = b.let("done", at + count * Expr(w));
  }
}

namespace {
bool is_transcendental(kernel::Op op) { return op >= kernel::Op::exp && op <= kernel::Op::pow; }

int cost_of(const Expr& e) {
  int cost = 0;
  for (const Expr& a : e->args) cost += cost_of(a);
  if (is_transcendental(e->op)) return cost + 20;
  return cost + (e->args.empty() ? 0 : 1);
}
}  // namespace

int epilogue_cost(const ops::Group& group) {
  int cost = 0;
  for (const ir::Node* node : group.epilogue) {
    std::vector<Expr> operands;
    for (const ir::Value* in : node->inputs())
      operands.push_back(in ? Expr(kernel::make_var("x", {in->type.dtype, 1})) : Expr());
    cost += cost_of(ops::def(*node).expr(*node, operands)) + static_cast<int>(operands.size()) - 1;
  }
  return cost;
}

int64_t wanted_tasks(const TargetInfo& target) { return 4 * std::max(2, target.cores); }

int unroll_factor(int64_t length, int limit) {
  int factor = 1;
  while (factor * 2 <= limit && length % (factor * 2) == 0) factor *= 2;
  return factor;
}

}  // namespace cuvil::schedules
