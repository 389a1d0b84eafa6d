#include "core/ops/builder.h"
#include "core/ops/data_movement.h"
#include "core/ops/define.h"
#include "core/ops/loops.h"

namespace cuvil::ops {
namespace {

std::vector<ir::Type> infer_reshape(const InferContext& c) {
  Shape shape = c.node.attr<Shape>("shape");
  const Dim total = num_elements(c.in(0).shape);
  int open = -1;
  Dim rest = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].as_const() == -1) {
      if (open >= 0) c.fail("shape has more than one -1");
      open = static_cast<int>(i);
    } else {
      if (shape[i].is_const() && shape[i].value() < 0) c.fail("shape has a negative size");
      rest = rest * shape[i];
    }
  }
  if (open >= 0) {
    if (rest.as_const() == 0) c.fail("-1 beside a size of 0 says nothing");
    shape[static_cast<size_t>(open)] = floordiv(total, rest);
    rest = rest * shape[static_cast<size_t>(open)];
  }
  if (rest.is_const() && total.is_const() && rest != total)
    c.fail("a shape of " + to_string(c.node.attr<Shape>("shape")) + " has another number of elements than the input");
  c.require_equal(rest, total, "elements of a reshaped tensor");
  return {{c.in(0).dtype, shape, {}}};
}

void lower_reshape(LowerContext& c) {
  const Shape& from = c.in_type(0).shape;
  const Shape& to = c.out_type().shape;
  // While the last axes agree, vectors run along them unchanged.
  const bool same_rows = !from.empty() && !to.empty() && from.back() == to.back();
  Walk walk;
  for_each(c, c.out_memory().type(), walk, [&](const Coords& at) {
    Coords in = at;
    if (same_rows) {
      const Shape outer_from(from.begin(), from.end() - 1), outer_to(to.begin(), to.end() - 1);
      std::vector<kernel::Expr> outer(at.index.begin(), at.index.end() - 1);
      in.index = unflatten(c, flatten(c, outer, outer_to), outer_from);
      in.index.push_back(at.index.back());
      if (at.axis >= 0) in.axis = static_cast<int>(from.size()) - 1;
    } else {
      std::vector<kernel::Expr> index;
      for (int a = 0; a < static_cast<int>(to.size()); ++a) index.push_back(at.at(a));
      in.index = unflatten(c, flatten(c, index, to), from);
      in.axis = -1;
    }
    c.store(at, c.load(0, in));
  });
}

/// To the same shape: nothing. Of a reshape: one, from the first's input.
ir::Value* fold_reshape(ir::Graph& graph, ir::Node& node) {
  if (node.input(0)->type == node.output()->type) return node.input(0);
  const ir::Node* before = node.input(0)->producer;
  if (!before || before->op != node.op) return nullptr;
  const Shape& to = node.output()->type.shape;
  if (num_elements(before->input(0)->type.shape) != num_elements(to)) return nullptr;
  Builder builder(graph, &node);
  builder.at(node.location);
  return builder.add(node.op, {before->input(0)}, {{"shape", to}});
}

}  // namespace

OpDef define_reshape() {
  OpDef d;
  d.name = "Reshape";
  d.doc =
      "The elements of x, in row-major order, under another shape. One size may be -1: what is left. Squeeze, "
      "Unsqueeze "
      "and Flatten are imported as this.";
  d.inputs = {{"x", "any shape"}};
  d.outputs = {{"y", "of the given shape"}};
  d.attributes = {required("shape", AttrKind::shape, "sizes of y")};
  d.traits = kView | kPure;
  d.dtypes = all_dtypes();
  d.infer = infer_reshape;
  d.lower = lower_reshape;
  d.flops = [](const ir::Node&) { return Dim(0); };
  d.fold = fold_reshape;
  d.samples = [] {
    return std::vector<Sample>{
        {"by_hand", {f32({2, 3})}, {{"shape", Shape{3, 2}}}, {{1, 2, 3, 4, 5, 6}}, {1, 2, 3, 4, 5, 6}},
        {"open", {f32({2, 3, 4})}, {{"shape", Shape{4, -1}}}},
        {"rows", {f32({2, 3, 19})}, {{"shape", Shape{6, 19}}}},
        {"scalar", {f32({1, 1})}, {{"shape", Shape{}}}},
        {"integers", {i64({4, 6})}, {{"shape", Shape{2, 2, 6}}}},
        {"empty", {f32({0, 3})}, {{"shape", Shape{3, 0}}}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
