#include "core/ops/define.h"
#include "core/ops/loops.h"

namespace cuvil::ops {

OpDef define_space_to_depth() {
  OpDef d;
  d.name = "SpaceToDepth";
  d.doc = "y[n, (u*b + v)*C + c, i, j] = x[n, c, i*b + u, j*b + v].";
  d.inputs = {{"x", "[N, C, H, W]"}};
  d.outputs = {{"y", "[N, C*b^2, H/b, W/b]"}};
  d.attributes = {required("blocksize", AttrKind::integer, "b")};
  d.traits = kBlockable | kEpilogueOk | kPure;
  d.dtypes = all_dtypes();
  d.infer = [](const InferContext& c) {
    need_rank(c, 0, 4);
    const int64_t b = c.node.attr<int64_t>("blocksize");
    const Shape& x = c.in(0).shape;
    if (b < 1 || b > 1 << 15) c.fail("blocksize must be positive");
    for (size_t a = 2; a < 4; ++a)
      c.require_equal(floordiv(x[a], b) * Dim(b), x[a], "image sizes are multiples of blocksize");
    return std::vector<ir::Type>{{c.in(0).dtype, {x[0], x[1] * Dim(b * b), floordiv(x[2], b), floordiv(x[3], b)}, {}}};
  };
  d.lower = [](LowerContext& c) {
    using kernel::Expr;
    const Expr b(c.node().attr<int64_t>("blocksize"));
    const Expr channels = c.dim(c.in_type(0).shape[1]);
    for_each(c, c.out_memory().type(), {}, [&](const Coords& at) {
      const Expr channel = at.at(1), tap = kernel::floordiv(channel, channels);
      c.store(at, c.load(0, at.with(1, channel % channels)
                                .with(2, at.at(2) * b + kernel::floordiv(tap, b))
                                .with(3, at.at(3) * b + tap % b)));
    });
  };
  d.flops = [](const ir::Node&) { return Dim(0); };
  d.samples = [] {
    const ir::Attributes by{{"blocksize", int64_t{2}}};
    return std::vector<Sample>{
        {"by_hand", {f32({1, 1, 2, 4})}, by, {{1, 3, 2, 4, 5, 7, 6, 8}}, {1, 2, 3, 4, 5, 6, 7, 8}},
        {"image", {f32({2, 5, 6, 10})}, by},
        {"block", {i64({1, 3, 9, 6})}, {{"blocksize", int64_t{3}}}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
