#include "core/ops/arg_reduce.h"

#include "core/ops/loops.h"

namespace cuvil::ops {

using kernel::Expr;
namespace k = cuvil::kernel;

namespace {
void lower(LowerContext& c, bool max) {
  const ir::Node& node = c.node();
  const int axis = axis_of(node, c.in_type(0).rank());
  const bool keep = node.attr<int64_t>("keepdims") != 0, last = node.attr<int64_t>("select_last_index") != 0;
  const bool floats = is_float(c.in_type(0).dtype);
  // f16 and bf16 compare as f32, which the backends have.
  const DType dtype = c.in_type(0).dtype;
  const DType wide = dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype;
  const auto load = [&](const Coords& at) { return k::cast({wide, 1}, c.load(0, at)); };
  ReduceNest nest(c, c.in_type(0), {axis}, /*along=*/false);
  nest.for_each_kept([&](const Coords& kept) {
    Register best(c.b(), "best", load(kept));
    Register where(c.b(), "where", k::constant({DType::i64, static_cast<uint16_t>(kept.lanes)}, 0));
    c.b().loop("r", 1, c.dim(c.in_type(0).shape[static_cast<size_t>(axis)]), k::LoopKind::serial, [&](Expr r) {
      const Expr x = c.b().let("x", load(kept.with(axis, r)));
      const Expr old = c.b().let("old", best.get());
      Expr take = last ? (max ? x >= old : x <= old) : (max ? x > old : x < old);
      // The first NaN wins and stays, as numpy has it.
      if (floats) take = (take | (x != x)) & (old == old);
      take = c.b().let("take", take);
      best.set(k::select(take, x, old));
      where.set(k::select(take, k::broadcast(r, kept.lanes), where.get()));
    });
    c.store(keep ? kept : drop_axes(kept, {axis}), where.get());
  });
}
}  // namespace

OpDef arg_reduction(std::string_view name, std::string_view doc, bool max) {
  OpDef d;
  d.name = name;
  d.doc = doc;
  d.inputs = {{"x", "any shape"}};
  d.outputs = {{"y", "i64, x's shape with the axis gone, or 1"}};
  d.attributes = {required("axis", AttrKind::integer, "the axis"),
                  optional("keepdims", AttrKind::integer, "1: the axis stays, with extent 1", int64_t{1}),
                  optional("select_last_index", AttrKind::integer, "1: the last of equal elements", int64_t{0})};
  d.traits = kReduction | kBlockable | kPure;
  d.dtypes = number_dtypes();
  d.infer = [](const InferContext& c) {
    const int axis = axis_of(c, c.node.attr<int64_t>("axis"), c.in(0).rank());
    ir::Type out{DType::i64, c.in(0).shape, {}};
    if (out.shape[static_cast<size_t>(axis)].as_const() == 0) c.fail("the axis has no elements to choose from");
    if (c.node.attr<int64_t>("keepdims") != 0)
      out.shape[static_cast<size_t>(axis)] = 1;
    else
      out.shape.erase(out.shape.begin() + axis);
    return std::vector<ir::Type>{out};
  };
  d.lower = [max](LowerContext& c) { lower(c, max); };
  d.flops = [](const ir::Node& n) { return num_elements(n.input(0)->type.shape); };
  d.samples = [max] {
    const auto over = [](int64_t axis, int64_t keep, int64_t last) {
      return ir::Attributes{{"axis", axis}, {"keepdims", keep}, {"select_last_index", last}};
    };
    const std::vector<double> values = {1, 3, 3, -2, -2, 0};
    return std::vector<Sample>{
        {"by_hand",
         {f32({2, 3})},
         over(1, 0, 0),
         {values},
         max ? std::vector<double>{1, 2} : std::vector<double>{0, 0}},
        {"last", {f32({2, 3})}, over(1, 0, 1), {values}, max ? std::vector<double>{2, 2} : std::vector<double>{0, 1}},
        {"columns", {f32({7, 19})}, over(0, 1, 0)},
        {"integers", {i64({3, 7, 5})}, over(1, 0, 1)},
        {"image", {f32({2, 20, 5, 7})}, over(1, 1, 0)},
        {"empty", {f32({0, 3})}, over(1, 0, 0)},
    };
  };
  return d;
}

}  // namespace cuvil::ops
