#include "core/ops/loops.h"

#include <algorithm>

#include "core/base/error.h"

namespace cuvil::ops {

using kernel::Expr;
using kernel::LoopKind;
namespace k = cuvil::kernel;

namespace {
/// Serial loops over extents[from..], completing `index`.
void loops_over(LowerContext& c, const Shape& extents, size_t from, std::vector<Expr>& index,
                const std::function<void(const std::vector<Expr>&)>& body) {
  if (from == extents.size()) return body(index);
  if (extents[from].as_const() == 1) {
    index.push_back(Expr(0));
    loops_over(c, extents, from + 1, index, body);
    index.pop_back();
    return;
  }
  c.b().loop("i" + std::to_string(from), c.dim(extents[from]), [&](Expr i) {
    index.push_back(i);
    loops_over(c, extents, from + 1, index, body);
    index.pop_back();
  });
}
}  // namespace

void tasks_over(LowerContext& c, const Shape& extents, int64_t grain,
                const std::function<void(const std::vector<Expr>&)>& body) {
  size_t outer = extents.size();
  int64_t inside = 1;
  while (outer > 0 && extents[outer - 1].is_const() && inside * extents[outer - 1].value() <= grain)
    inside *= extents[--outer].value();
  Dim tasks = 1;
  for (size_t i = 0; i < outer; ++i) tasks = tasks * extents[i];
  if (inside == 0) tasks = 0;
  const Expr count = c.dim(tasks);
  std::vector<Expr> sizes = c.extents(extents);
  c.b().phase(count, [&](Expr task) {
    std::vector<Expr> index(outer);
    Expr rest = task;
    for (size_t i = outer; i-- > 0;) {
      if (extents[i].as_const() == 1) {
        index[i] = Expr(0);
        continue;
      }
      bool first = true;
      for (size_t j = 0; j < i; ++j) first = first && extents[j].as_const() == 1;
      index[i] = first ? rest : c.b().let("t" + std::to_string(i), rest % sizes[i]);
      if (!first) rest = k::floordiv(rest, sizes[i]);
    }
    loops_over(c, extents, outer, index, body);
  });
}

Register::Register(k::Builder& b, std::string name, const Expr& start)
    : b_(b), buffer_(b.alloc(std::move(name), start.type(), {Expr(1)}, k::Space::reg)) {
  set(start);
}
Expr Register::get() const { return k::load(buffer_, {Expr(0)}, buffer_->type.lanes); }

int fitting_lanes(const Dim& extent, int lanes) {
  if (!extent.is_const()) return lanes;
  int n = 1;
  while (n < lanes && n < extent.value()) n *= 2;
  return n;
}

void vector_loop(k::Builder& b, const std::string& name, const Expr& begin, const Expr& end, int lanes,
                 const std::function<void(Expr, Expr)>& body, bool exact) {
  if (lanes == 1) {
    b.loop(name, begin, end, LoopKind::serial, [&](Expr i) { body(i, Expr()); });
    return;
  }
  const bool known = begin->op == k::Op::const_int && end->op == k::Op::const_int;
  const int64_t count = known ? std::max<int64_t>(0, end->int_value - begin->int_value) : -1;
  if (exact || (known && count % lanes == 0)) {
    if (known && count == lanes) return body(begin, Expr());
    b.loop(name, begin, end, LoopKind::serial, [&](Expr i) { body(i, Expr()); }, lanes);
    return;
  }
  const Expr full = known ? Expr(begin->int_value + count / lanes * lanes)
                          : b.let(name + "_full", begin + k::floordiv(end - begin, Expr(lanes)) * Expr(lanes));
  if (!known || count >= lanes) b.loop(name, begin, full, LoopKind::serial, [&](Expr i) { body(i, Expr()); }, lanes);
  if (known) return body(full, k::lane_mask(full, end, lanes));
  b.branch(full < end, [&] { body(full, k::lane_mask(full, end, lanes)); });
}

void for_each(LowerContext& c, const ir::Type& space, const Walk& walk,
              const std::function<void(const Coords&)>& body) {
  const int rank = space.rank();
  const ir::Layout& layout = space.layout;
  std::vector<int> order = layout.order;
  if (order.empty())
    for (int a = 0; a < rank; ++a) order.push_back(a);
  const bool blocked = layout.blocks.size() == 1;
  if (layout.blocks.size() > 1) {  // walked logically; accesses find their way
    order.clear();
    for (int a = 0; a < rank; ++a) order.push_back(a);
  }
  const int axis = rank == 0 ? -1 : blocked ? layout.blocks[0].axis : order.back();
  const int limit = std::min(walk.max_lanes, c.lanes());
  int lanes = 1;
  if (axis >= 0)
    lanes =
        blocked ? std::min(limit, layout.blocks[0].size) : fitting_lanes(space.shape[static_cast<size_t>(axis)], limit);
  if (layout.blocks.size() > 1) lanes = 1;

  Shape extents;  // of the loops: axes in physical order, the vector axis in steps (chunks of a plain one), last
  for (int a : order)
    if (a != axis || blocked) extents.push_back(space.shape[static_cast<size_t>(a)]);
  if (rank == 0) {
    tasks_over(c, {}, 1, [&](const std::vector<Expr>&) { body(Coords{}); });
    return;
  }
  const Dim extent = space.shape[static_cast<size_t>(axis)];
  const Expr end = c.dim(extent);
  if (blocked) {
    const int block = layout.blocks[0].size;
    for (size_t p = 0; p < order.size(); ++p)
      if (order[p] == axis) extents[p] = ceildiv(extent, block);
    const bool exact = extent.divisible_by(block);
    tasks_over(c, extents, std::max<int64_t>(1, walk.grain / block), [&](const std::vector<Expr>& i) {
      Coords at;
      at.index.resize(static_cast<size_t>(rank));
      for (size_t p = 0; p < order.size(); ++p) at.index[static_cast<size_t>(order[p])] = i[p];
      const Expr first = at.index[static_cast<size_t>(axis)] * Expr(block);
      at.lanes = lanes;
      const auto visit = [&](Expr base) {
        at.axis = lanes > 1 ? axis : -1;
        at.index[static_cast<size_t>(axis)] = base;
        if (!exact) at.mask = k::lane_mask(base, end, lanes);
        body(at);
      };
      if (lanes == block)
        visit(c.b().let("c", first));
      else
        c.b().loop("c", first, first + Expr(block), LoopKind::serial, [&](Expr base) { visit(base); }, lanes);
    });
    return;
  }
  const std::optional<int64_t> known = extent.as_const();
  const int64_t chunk =
      known && *known <= 2 * walk.grain ? std::max<int64_t>(1, *known) : std::max<int64_t>(64, walk.grain / 64 * 64);
  extents.push_back(ceildiv(extent, chunk));
  tasks_over(c, extents, std::max<int64_t>(1, walk.grain / chunk), [&](const std::vector<Expr>& i) {
    Coords at;
    at.index.resize(static_cast<size_t>(rank));
    for (size_t p = 0, q = 0; p < order.size(); ++p)
      if (order[p] != axis) at.index[static_cast<size_t>(order[p])] = i[q++];
    at.lanes = lanes;
    at.axis = lanes > 1 ? axis : -1;
    const bool whole = known && chunk >= *known;
    const Expr begin = whole ? Expr(0) : i.back() * Expr(chunk);
    const Expr stop = whole ? end : k::min(end, begin + Expr(chunk));
    vector_loop(
        c.b(), "v", begin, stop, lanes,
        [&](Expr base, Expr mask) {
          at.index[static_cast<size_t>(axis)] = base;
          at.mask = mask;
          body(at);
        },
        extent.divisible_by(lanes));
  });
}

}  // namespace cuvil::ops
