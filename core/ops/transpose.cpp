#include <algorithm>

#include "core/ops/builder.h"
#include "core/ops/define.h"
#include "core/ops/loops.h"
#include "core/ops/reorder.h"

namespace cuvil::ops {
namespace {

std::vector<ir::Type> infer_transpose(const InferContext& c) {
  const Ints& perm = c.node.attr<Ints>("perm");
  const Shape& in = c.in(0).shape;
  if (perm.size() != in.size()) c.fail("perm must name each of the input's axes once");
  std::vector<bool> seen(in.size(), false);
  ir::Type out{c.in(0).dtype, {}, {}};
  for (int64_t p : perm) {
    const size_t a = static_cast<size_t>(axis_of(c, p, c.in(0).rank(), "perm entry"));
    if (seen[a]) c.fail("perm must name each of the input's axes once");
    seen[a] = true;
    out.shape.push_back(in[a]);
  }
  return {out};
}

void lower_transpose(LowerContext& c) {
  const Ints& perm = c.node().attr<Ints>("perm");
  const int rank = static_cast<int>(perm.size());
  for_each(c, c.out_memory().type(), {}, [&](const Coords& at) {
    Coords in = at;
    in.axis = -1;
    for (int i = 0; i < rank; ++i) {
      const int64_t p = perm[static_cast<size_t>(i)];
      const int a = static_cast<int>(p < 0 ? p + rank : p);
      in.index[static_cast<size_t>(a)] = at.index[static_cast<size_t>(i)];
      if (at.axis == i) in.axis = a;
    }
    c.store(at, c.load(0, in));
  });
}

/// The identity vanishes, two in a row become one, and a constant is permuted.
ir::Value* fold_transpose(ir::Graph& graph, ir::Node& node) {
  const auto positive = [](Ints perm) {
    for (int64_t& p : perm) p += p < 0 ? static_cast<int64_t>(perm.size()) : 0;
    return perm;
  };
  const Ints perm = positive(node.attr<Ints>("perm"));
  if (std::is_sorted(perm.begin(), perm.end()) && node.input(0)->type == node.output()->type) return node.input(0);
  Builder builder(graph, &node);
  builder.at(node.location);
  if (const ir::Tensor* t = ir::constant_of(node.input(0)); t && t->type.layout.is_plain()) {
    ir::Tensor permuted = reorder(*t, ir::Layout{{perm.begin(), perm.end()}, {}});
    permuted.type = node.output()->type;
    return permuted.type.layout.is_plain() ? builder.constant(permuted) : nullptr;
  }
  const ir::Node* before = node.input(0)->producer;
  if (!before || before->op != node.op || !node.output()->type.layout.is_plain()) return nullptr;
  const Ints first = positive(before->attr<Ints>("perm"));
  Ints both;
  for (int64_t p : perm) both.push_back(first[static_cast<size_t>(p)]);
  return builder.add(node.op, {before->input(0)}, {{"perm", both}});
}

}  // namespace

OpDef define_transpose() {
  OpDef d;
  d.name = "Transpose";
  d.doc = "y[i_0, i_1, ...] = x[j] with j[perm[k]] = i_k: axis k of y is axis perm[k] of x.";
  d.inputs = {{"x", "any shape"}};
  d.outputs = {{"y", "permuted shape"}};
  d.attributes = {required("perm", AttrKind::integers, "axes of x in the order of y")};
  d.traits = kPure | kEpilogueOk;
  d.dtypes = all_dtypes();
  d.infer = infer_transpose;
  d.lower = lower_transpose;
  d.flops = [](const ir::Node&) { return Dim(0); };
  d.fold = fold_transpose;
  d.samples = [] {
    return std::vector<Sample>{
        {"by_hand", {f32({2, 3})}, {{"perm", Ints{1, 0}}}, {{1, 2, 3, 4, 5, 6}}, {1, 4, 2, 5, 3, 6}},
        {"nhwc", {f32({2, 20, 5, 7})}, {{"perm", Ints{0, 2, 3, 1}}}},
        {"heads", {f32({2, 9, 3, 17})}, {{"perm", Ints{0, 2, 1, 3}}}},
        {"integers", {i64({3, 4})}, {{"perm", Ints{1, 0}}}},
        {"scalar", {f32({})}, {{"perm", Ints{}}}},
        {"empty", {f32({0, 3})}, {{"perm", Ints{1, 0}}}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
