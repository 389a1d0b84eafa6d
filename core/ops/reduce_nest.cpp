#include <algorithm>

#include "core/base/error.h"
#include "core/ops/loops.h"

namespace cuvil::ops {

using kernel::Expr;
namespace k = cuvil::kernel;

ReduceNest::ReduceNest(LowerContext& c, ir::Type input, std::vector<int> axes, bool along)
    : c_(c), input_(std::move(input)), axes_(std::move(axes)) {
  const ir::Layout& layout = input_.layout;
  const int last = layout.blocks.empty() && input_.rank() > 0
                       ? (layout.order.empty() ? input_.rank() - 1 : layout.order.back())
                       : -1;
  along_ = along && last >= 0 && std::find(axes_.begin(), axes_.end(), last) != axes_.end();
  if (!along_) return;
  vector_axis_ = last;
  lanes_ = fitting_lanes(input_.shape[static_cast<size_t>(last)], c.lanes());
  along_ = lanes_ > 1;
  // Walked last, so that one vector after the other lies in memory.
  axes_.erase(std::find(axes_.begin(), axes_.end(), vector_axis_));
  axes_.push_back(vector_axis_);
}

Dim ReduceNest::count() const {
  Dim n = 1;
  for (int a : axes_) n = n * input_.shape[static_cast<size_t>(a)];
  return n;
}

void ReduceNest::for_each_kept(const std::function<void(const Coords&)>& body, int64_t grain) {
  ir::Type kept = input_;
  for (int a : axes_) kept.shape[static_cast<size_t>(a)] = 1;
  Walk walk;
  walk.grain = grain;
  // Vectors across kept positions only along the axis that lies contiguously in the input, if it is kept.
  const ir::Layout& layout = input_.layout;
  const int axis = input_.rank() == 0       ? -1
                   : !layout.blocks.empty() ? layout.blocks.back().axis
                   : layout.order.empty()   ? input_.rank() - 1
                                            : layout.order.back();
  const bool reduced = std::find(axes_.begin(), axes_.end(), axis) != axes_.end();
  if (reduced) {
    walk.max_lanes = 1;
    kept.layout = {};
  }
  for_each(c_, kept, walk, [&](const Coords& at) {
    Coords kept_at = at;
    for (int a : axes_) kept_at.index[static_cast<size_t>(a)] = Expr(0);
    body(kept_at);
  });
}

void ReduceNest::over(const Coords& kept, const std::function<void(const Coords&)>& body) { walk(kept, body, {}); }

void ReduceNest::walk(const Coords& kept, const std::function<void(const Coords&)>& body, const Wrap& around_run) {
  const std::function<void(size_t, const Coords&)> nest = [&](size_t i, const Coords& at) {
    if (i == axes_.size()) return body(at);
    const int a = axes_[i];
    const Dim& extent = input_.shape[static_cast<size_t>(a)];
    const Expr end = c_.dim(extent);
    const std::string name = "r" + std::to_string(a);
    const bool vectors = along_ && a == vector_axis_;
    const auto run = [&](const Expr& from, const Expr& to) {
      if (!vectors) {
        c_.b().loop(name, from, to, kernel::LoopKind::serial, [&](Expr r) { nest(i + 1, at.with(a, r)); });
        return;
      }
      vector_loop(
          c_.b(), name, from, to, lanes_,
          [&](Expr base, Expr mask) {
            Coords inner = at.with(a, base);
            inner.axis = a;
            inner.lanes = lanes_;
            inner.mask = mask;
            nest(i + 1, inner);
          },
          extent.divisible_by(lanes_));
    };
    if (!around_run || i + 1 < axes_.size()) return run(0, end);
    const int64_t steps = kRun * (vectors ? lanes_ : 1);
    if (extent.is_const() && extent.value() <= steps) return around_run([&] { run(0, end); });
    c_.b().loop(name + "_run", 0, k::ceildiv(end, Expr(steps)), kernel::LoopKind::serial, [&](Expr chunk) {
      around_run([&] { run(chunk * Expr(steps), k::min(end, (chunk + Expr(1)) * Expr(steps))); });
    });
  };
  nest(0, kept);
}

Expr ReduceNest::fold(const Coords& kept, k::Op op, const Expr& start,
                      const std::function<Expr(const Coords&)>& value) {
  const int lanes = along_ ? lanes_ : kept.lanes;
  const Expr neutral = k::broadcast(start, lanes);
  Register acc(c_.b(), "acc", neutral);
  const auto add_to = [&](Register& sum) {
    return [&](const Coords& at) {
      Expr x = value(at);
      if (!x.type().is_vector() && lanes > 1) x = k::broadcast(x, lanes);
      if (along_ && at.mask) x = k::select(at.mask, x, neutral);
      sum.set(k::make(op, {sum.get(), x}));
    };
  };
  const Dim steps = count();
  const bool is_long = !steps.is_const() || steps.value() > kRun * (along_ ? lanes_ : 1);
  if (op == k::Op::add && is_float(start.type().dtype) && is_long) {
    // Rounding errors grow with the number of terms added to one sum: partial sums per run keep both counts small.
    Register part(c_.b(), "part", neutral);
    walk(kept, add_to(part), [&](const std::function<void()>& run) {
      part.set(neutral);
      run();
      acc.set(acc.get() + part.get());
    });
  } else {
    over(kept, add_to(acc));
  }
  Expr total = acc.get();
  if (along_) {
    switch (op) {
      case k::Op::add:
        total = k::make(k::Op::reduce_add, {total});
        break;
      case k::Op::max:
        total = k::make(k::Op::reduce_max, {total});
        break;
      case k::Op::min:
        total = k::make(k::Op::reduce_min, {total});
        break;
      default: {
        total = c_.b().let("lanes", total);
        Expr folded = k::lane(total, 0);
        for (int i = 1; i < lanes; ++i) folded = k::make(op, {folded, k::lane(total, i)});
        total = folded;
      }
    }
  }
  return c_.b().let("total", total);
}

}  // namespace cuvil::ops
