#include "core/ops/elementwise_nest.h"

#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "core/ops/loops.h"

namespace cuvil::ops {

using kernel::Expr;
namespace k = cuvil::kernel;

namespace {

/// Physical extents of one tensor, aligned with those of the result, and which of them it really has.
struct Alignment {
  Shape extents;
  std::vector<bool> full;
};

/// How a tensor lies beside a result of type `out` if both are walked physically; nullopt if it lies otherwise.
std::optional<Alignment> align(const ir::Type& t, const ir::Type& out) {
  const size_t rank = out.shape.size(), shift = rank - t.shape.size();
  const Shape physical = out.layout.physical_shape(out.shape);
  std::vector<bool> has(rank, false);  // per logical axis of the result
  // Sizes that may differ by their symbols only are assumed equal (InferContext::require_equal).
  for (size_t a = shift; a < rank; ++a)
    has[a] = t.shape[a - shift] == out.shape[a] || t.shape[a - shift].as_const() != 1;
  std::vector<int> axis_of;  // of each physical dimension
  for (size_t p = 0; p < rank; ++p)
    axis_of.push_back(out.layout.order.empty() ? static_cast<int>(p) : out.layout.order[p]);
  for (const ir::Layout::Block& b : out.layout.blocks) axis_of.push_back(b.axis);

  Alignment result;
  if (t.layout == out.layout && (shift == 0 || out.layout.is_plain())) {
    const Shape own = t.layout.physical_shape(t.shape);
    for (size_t p = 0; p < physical.size(); ++p) {
      result.full.push_back(has[static_cast<size_t>(axis_of[p])]);
      result.extents.push_back(p < shift ? Dim(1) : own[p - shift]);
    }
    return result;
  }
  // A plain tensor beside a permuted or blocked result: what it has must come in the same order in memory.
  if (!t.layout.is_plain()) return std::nullopt;
  for (size_t a = 0; a < rank; ++a) has[a] = has[a] && out.shape[a].as_const() != 1;
  int previous = -1;
  for (size_t p = 0; p < physical.size(); ++p) {
    const int a = axis_of[p];
    const bool full = has[static_cast<size_t>(a)];
    result.full.push_back(full);
    result.extents.push_back(full ? physical[p] : Dim(1));
    if (!full) continue;
    if (a < previous) return std::nullopt;
    previous = a;
  }
  for (const ir::Layout::Block& b : out.layout.blocks) {
    if (!has[static_cast<size_t>(b.axis)]) continue;
    // Outer part and block of the axis must be neighbours: it is the tensor's only axis, and fills its blocks.
    int axes = 0;
    for (bool h : has) axes += h;
    int64_t size = 1;
    for (const ir::Layout::Block& other : out.layout.blocks) size *= other.axis == b.axis ? other.size : 1;
    if (axes != 1 || !out.shape[static_cast<size_t>(b.axis)].divisible_by(size)) return std::nullopt;
  }
  return result;
}

/// A value of the group where every input's element has been loaded.
class Evaluator {
 public:
  Evaluator(k::Builder& b, std::map<const ir::Value*, Expr> known, int lanes)
      : b_(b), known_(std::move(known)), lanes_(lanes) {}
  Expr value(const ir::Value* v) {
    if (auto it = known_.find(v); it != known_.end()) return it->second;
    if (Expr immediate = immediate_of(v)) return known_[v] = k::broadcast(immediate, lanes_);
    CUVIL_CHECK(v->producer && def(*v->producer).is(kElementwise), "'" + v->name + "' is not part of its group");
    std::vector<Expr> operands;
    for (const ir::Value* in : v->producer->inputs()) operands.push_back(in ? value(in) : Expr());
    Expr result = elementwise_value(*v->producer, std::move(operands));
    if (result.type().lanes != lanes_) result = k::broadcast(result, lanes_);
    // A name of its own: an expression is a tree, and whoever uses the value may do so several times.
    result = b_.let("v", result);
    return known_[v] = result;
  }

 private:
  k::Builder& b_;
  std::map<const ir::Value*, Expr> known_;
  int lanes_;
};

/// Merges neighbouring dimensions that all tensors treat alike and drops those of extent 1. Row 0 is the result.
void collapse(std::vector<Alignment>& rows) {
  std::vector<Alignment> merged(rows.size());
  const size_t dims = rows[0].full.size();
  for (size_t p = 0; p < dims; ++p) {
    bool ones = true, alike = !merged[0].full.empty();
    for (size_t t = 0; t < rows.size(); ++t) {
      ones = ones && rows[t].extents[p].as_const() == 1;
      alike = alike && merged[t].full.back() == rows[t].full[p];
    }
    if (ones) continue;
    for (size_t t = 0; t < rows.size(); ++t) {
      if (alike) {
        merged[t].extents.back() = merged[t].extents.back() * rows[t].extents[p];
      } else {
        merged[t].extents.push_back(rows[t].extents[p]);
        merged[t].full.push_back(rows[t].full[p]);
      }
    }
  }
  rows = std::move(merged);
}

}  // namespace

k::Kernel lower_elementwise(const Group& group, const TargetInfo& target, std::string kernel_name) {
  const std::vector<Port> results = results_of(group);
  std::vector<Port> ports = results;  // what lies in memory: results first
  const ir::Type& out = results[0].type;
  for (const Port& r : results)
    CUVIL_CHECK(r.type.shape == out.shape, "results of an elementwise group differ in shape");
  const std::vector<Port> inputs = inputs_of(group);
  for (const Port& i : inputs)
    if (!i.immediate) ports.push_back(i);

  std::vector<Alignment> rows;
  for (const Port& p : ports) {
    std::optional<Alignment> a = align(p.type, out);
    if (!a) break;
    rows.push_back(std::move(*a));
  }
  const bool physical = rows.size() == ports.size();
  std::vector<Shape> shapes;  // of the kernel's parameters
  if (physical) {
    collapse(rows);
    size_t t = results.size();
    for (const Port& i : inputs)
      shapes.push_back(i.immediate ? i.type.layout.physical_shape(i.type.shape) : rows[t++].extents);
    for (size_t r = 0; r < results.size(); ++r) shapes.push_back(rows[r].extents);
  }
  LowerContext c(group, target, std::move(kernel_name), physical ? &shapes : nullptr);

  const auto compute = [&](const auto& load, const auto& store, int lanes) {
    std::map<const ir::Value*, Expr> known;
    size_t t = results.size();
    for (const Port& i : inputs) {
      if (known.count(i.value)) {
        t += i.immediate ? 0 : 1;
        continue;
      }
      known.emplace(i.value, i.immediate ? k::broadcast(i.immediate, lanes) : c.b().let("x", load(i, t)));
      t += i.immediate ? 0 : 1;
    }
    Evaluator evaluate(c.b(), std::move(known), lanes);
    for (size_t r = 0; r < results.size(); ++r) store(r, evaluate.value(results[r].value));
  };

  if (!physical) {
    for_each(c, out, {}, [&](const Coords& at) {
      compute([&](const Port& p, size_t) { return c.memory(p).load(broadcast_coords(at, out.shape, p.type.shape)); },
              [&](size_t r, Expr value) { c.result_memory(r).store(c.b(), at, std::move(value)); }, at.lanes);
    });
    return c.finish();
  }
  const auto view = [&](const TensorAccess& a, size_t t) {
    return TensorAccess(a.buffer(), {a.type().dtype, rows[t].extents, {}});
  };
  for_each(c, {out.dtype, rows[0].extents, {}}, {}, [&](const Coords& at) {
    compute(
        [&](const Port& p, size_t t) {
          Coords own = at;
          for (size_t d = 0; d < rows[t].full.size(); ++d)
            if (!rows[t].full[d]) own = own.with(static_cast<int>(d), Expr(0));
          return view(c.memory(p), t).load(own);
        },
        [&](size_t r, Expr value) { view(c.result_memory(r), r).store(c.b(), at, std::move(value)); }, at.lanes);
  });
  return c.finish();
}

}  // namespace cuvil::ops
