#include "core/ops/indexing.h"

namespace cuvil::ops {
namespace {

using kernel::Expr;

void lower_scatter_elements(LowerContext& c) {
  const ir::Node& node = c.node();
  const ir::Type& data = c.in_type(0);
  const int axis = axis_of(node, data.rank());
  const Expr size = c.dim(data.shape[static_cast<size_t>(axis)]);
  const std::string& reduction = node.attr<std::string>("reduction");
  for_each(c, data, {}, [&](const Coords& at) { c.out_memory().store(c.b(), at, c.load(0, at)); });
  // Updates come in order, so the last one to an element wins: one task.
  const Shape& updates = c.in_type(1).shape;
  c.b().phase(1, [&](Expr) {
    const std::function<void(Coords)> nest = [&](Coords at) {
      const size_t a = at.index.size();
      if (a == updates.size()) {
        const Coords target = at.with(axis, checked_index(c, c.load(1, at), size));
        const Expr update = c.load(2, at);
        c.out_memory().store(c.b(), target,
                             reduction == "none" ? update : combine(reduction, c.out_memory().load(target), update));
        return;
      }
      c.b().loop("i" + std::to_string(a), c.dim(updates[a]), [&](Expr i) {
        Coords inside = at;
        inside.index.push_back(i);
        nest(std::move(inside));
      });
    };
    nest({});
  });
}

}  // namespace

OpDef define_scatter_elements() {
  OpDef d;
  d.name = "ScatterElements";
  d.doc =
      "y = data, then for all i, j, k in order y[i, indices[i, j, k], k] = updates[i, j, k] for axis 1, or the old "
      "element "
      "combined with it. Negative indices count from the end; one out of range fails at run time.";
  d.inputs = {{"data", "any shape"}, {"indices", "i64 or i32, of data's rank"}, {"updates", "shape of indices"}};
  d.outputs = {{"y", "shape of data"}};
  d.attributes = {optional("axis", AttrKind::integer, "the axis", int64_t{0}), reduction_attribute()};
  d.traits = kPure;
  d.dtypes = all_dtypes();
  d.infer = [](const InferContext& c) {
    need_index(c, 1);
    same_dtype(c, 2);
    need_rank(c, 1, c.in(0).rank());
    need_rank(c, 2, c.in(0).rank());
    check_reduction(c);
    const size_t axis = static_cast<size_t>(axis_of(c, c.node.attr<int64_t>("axis"), c.in(0).rank()));
    for (size_t a = 0; a < c.in(0).shape.size(); ++a) {
      c.require_equal(c.in(1).shape[a], c.in(2).shape[a], "sizes of indices and updates");
      if (a != axis) c.require_equal(min(c.in(1).shape[a], c.in(0).shape[a]), c.in(1).shape[a], "size of indices");
    }
    return std::vector<ir::Type>{{c.in(0).dtype, c.in(0).shape, {}}};
  };
  d.lower = lower_scatter_elements;
  d.flops = [](const ir::Node&) { return Dim(0); };
  d.samples = [] {
    const std::vector<std::optional<ir::Type>> small = {f32({1, 4}), i64({1, 3}), f32({1, 3})};
    const std::vector<std::vector<double>> values = {{1, 2, 3, 4}, {1, -1, 1}, {10, 20, 30}};
    return std::vector<Sample>{
        {"by_hand", small, {{"axis", int64_t{1}}}, values, {1, 30, 3, 20}},
        {"add", small, {{"axis", int64_t{1}}, {"reduction", std::string("add")}}, values, {1, 42, 3, 24}},
        {"max", small, {{"axis", int64_t{1}}, {"reduction", std::string("max")}}, values, {1, 30, 3, 20}},
        {"rows", {i64({3, 5}), of(DType::i32, {2, 5}), i64({2, 5})}, {}, {{}, {0, 1, 2, 0, 1, 2, 0, -1, -2, 0}}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
