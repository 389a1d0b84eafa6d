#include "core/ops/normalization.h"
#include "core/ops/window.h"

namespace cuvil::ops {
namespace {

using kernel::Expr;

void lower_group_norm(LowerContext& c) {
  const ir::Type& x = c.in_type(0);
  const kernel::Type type{accumulator_type(x.dtype), 1};
  const Dim groups = c.node().attr<int64_t>("num_groups");
  const Dim channels = floordiv(x.shape[1], groups);  // of a group
  // The group's elements as one row: channels of the group, then space.
  Shape inner(x.shape.begin() + 2, x.shape.end());
  inner.insert(inner.begin(), channels);
  const Dim row_size = num_elements(inner);
  const int last = x.rank() - 1;
  const int lanes = fitting_lanes(x.shape.back(), c.lanes());
  const Expr first_size = c.dim(channels);
  tasks_over(c, {x.shape[0], groups}, 1, [&](const std::vector<Expr>& task) {
    const auto over = [&](const std::function<void(const Coords&)>& body,
                          const std::function<void(const std::function<void()>&)>& around_row = {}) {
      const std::function<void(int, Coords)> nest = [&](int a, Coords at) {
        if (a == last) {
          const auto row = [&] {
            vector_loop(
                c.b(), "v", 0, c.dim(x.shape.back()), lanes,
                [&](Expr base, Expr mask) {
                  Coords inside = at;
                  inside.index.push_back(base);
                  inside.mask = mask;
                  inside.lanes = lanes;
                  inside.axis = lanes > 1 ? last : -1;
                  body(inside);
                },
                x.shape.back().divisible_by(lanes));
          };
          return around_row ? around_row(row) : row();
        }
        c.b().loop("i" + std::to_string(a), a == 1 ? first_size : c.dim(x.shape[static_cast<size_t>(a)]), [&](Expr i) {
          Coords inside = at;
          inside.index.push_back(a == 1 ? task[1] * first_size + i : i);
          nest(a + 1, inside);
        });
      };
      Coords start;
      start.index = {task[0]};
      nest(1, start);
    };
    const auto total = [&](const std::function<Expr(const Coords&)>& value) {
      const Expr zero = kernel::broadcast(kernel::constant(type, 0), lanes);
      Register sum(c.b(), "sum", zero), part(c.b(), "part", zero);  // blocked by rows, as in ReduceNest
      over(
          [&](const Coords& at) {
            Expr v = value(at);
            if (at.mask) v = kernel::select(at.mask, v, kernel::constant(v.type(), 0));
            part.set(part.get() + v);
          },
          [&](const std::function<void()>& row) {
            part.set(zero);
            row();
            sum.set(sum.get() + part.get());
          });
      const Expr all = lanes > 1 ? kernel::make(kernel::Op::reduce_add, {sum.get()}) : sum.get();
      return c.b().let("total", all / kernel::cast(type, c.dim(row_size)));
    };
    const auto load = [&](const Coords& at) { return kernel::cast(type, c.load(0, at)); };
    const Expr mean = total(load);
    const Expr variance = total([&](const Coords& at) {
      const Expr d = c.b().let("d", load(at) - at_lanes(mean, at));
      return d * d;
    });
    const Expr epsilon = kernel::constant(type, c.node().attr<double>("epsilon"));
    const Expr factor =
        c.b().let("factor", kernel::constant(type, 1) / kernel::make(kernel::Op::sqrt, {variance + epsilon}));
    over([&](const Coords& at) {
      const auto channel = [&](size_t i) { return kernel::cast(type, c.load(i, channel_coords(at))); };
      c.store(at, (load(at) - at_lanes(mean, at)) * at_lanes(factor, at) * channel(1) + channel(2));
    });
  });
}

}  // namespace

OpDef define_group_normalization() {
  OpDef d;
  d.name = "GroupNormalization";
  d.doc =
      "y[n, c, ...] = (x - mean) / sqrt(variance + epsilon) * scale[c] + bias[c]; mean and variance over the channels "
      "of "
      "c's group and the axes after them.";
  d.inputs = {{"x", "[N, C, ...]"}, {"scale", "[C]"}, {"bias", "[C]"}};
  d.outputs = {{"y", "shape of x"}};
  d.attributes = {required("num_groups", AttrKind::integer, "groups of neighbouring channels"), epsilon_attribute()};
  d.traits = kEpilogueOk | kPure;
  d.dtypes = real_dtypes();
  d.infer = [](const InferContext& c) {
    if (c.in(0).rank() < 3) c.fail("x needs axes of batch, channels and space");
    const int64_t groups = c.node.attr<int64_t>("num_groups");
    if (groups < 1 || !c.in(0).shape[1].divisible_by(groups)) c.fail("channels are not a multiple of num_groups");
    for (size_t i = 1; i < 3; ++i) {
      same_dtype(c, i);
      if (c.in(i).shape != Shape{c.in(0).shape[1]}) c.fail("scale and bias need one value per channel");
    }
    return std::vector<ir::Type>{{c.in(0).dtype, c.in(0).shape, {}}};
  };
  d.lower = lower_group_norm;
  d.flops = [](const ir::Node& n) { return Dim(7) * num_elements(n.output()->type.shape); };
  d.samples = [] {
    return std::vector<Sample>{
        {"by_hand",
         {f32({1, 2, 2}), f32({2}), f32({2})},
         {{"num_groups", int64_t{1}}, {"epsilon", 0.0}},
         {{1, 1, 5, 5}, {1, 2}, {0, 1}},
         {-1, -1, 3, 3}},
        {"image", {f32({2, 6, 5, 7}), f32({6}), f32({6})}, {{"num_groups", int64_t{3}}}},
        {"wide", {f32({1, 4, 33}), f32({4}), f32({4})}, {{"num_groups", int64_t{2}}}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
