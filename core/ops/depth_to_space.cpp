#include "core/ops/define.h"
#include "core/ops/loops.h"

namespace cuvil::ops {

OpDef define_depth_to_space() {
  OpDef d;
  d.name = "DepthToSpace";
  d.doc =
      "y[n, c, i*b + u, j*b + v] = x[n, (u*b + v)*C' + c, i, j] (mode DCR) or x[n, c*b*b + u*b + v, i, j] (CRD), with "
      "C' = C / b^2.";
  d.inputs = {{"x", "[N, C, H, W]"}};
  d.outputs = {{"y", "[N, C/b^2, H*b, W*b]"}};
  d.attributes = {required("blocksize", AttrKind::integer, "b"),
                  optional("mode", AttrKind::string, "DCR or CRD", std::string("DCR"))};
  d.traits = kBlockable | kEpilogueOk | kPure;
  d.dtypes = all_dtypes();
  d.infer = [](const InferContext& c) {
    need_rank(c, 0, 4);
    const int64_t b = c.node.attr<int64_t>("blocksize");
    const std::string& mode = c.node.attr<std::string>("mode");
    const Shape& x = c.in(0).shape;
    if (mode != "DCR" && mode != "CRD") c.fail("mode must be DCR or CRD");
    if (b < 1 || b > 1 << 15 || !x[1].divisible_by(b * b)) c.fail("channels are not a multiple of blocksize squared");
    return std::vector<ir::Type>{{c.in(0).dtype, {x[0], floordiv(x[1], b * b), x[2] * Dim(b), x[3] * Dim(b)}, {}}};
  };
  d.lower = [](LowerContext& c) {
    using kernel::Expr;
    const Expr b(c.node().attr<int64_t>("blocksize"));
    const bool dcr = c.node().attr<std::string>("mode") == "DCR";
    const Expr channels = c.dim(c.out_type().shape[1]);
    for_each(c, c.out_memory().type(), {}, [&](const Coords& at) {
      const Expr y = at.at(2), x = at.at(3);
      const Expr tap = (y % b) * b + x % b;
      const Expr channel = dcr ? tap * channels + at.at(1) : at.at(1) * b * b + tap;
      c.store(at, c.load(0, at.with(1, channel).with(2, kernel::floordiv(y, b)).with(3, kernel::floordiv(x, b))));
    });
  };
  d.flops = [](const ir::Node&) { return Dim(0); };
  d.samples = [] {
    const auto by = [](std::string mode) {
      return ir::Attributes{{"blocksize", int64_t{2}}, {"mode", std::move(mode)}};
    };
    return std::vector<Sample>{
        {"by_hand", {f32({1, 4, 1, 2})}, by("DCR"), {{1, 2, 3, 4, 5, 6, 7, 8}}, {1, 3, 2, 4, 5, 7, 6, 8}},
        {"dcr", {f32({2, 40, 3, 5})}, by("DCR")},
        {"crd", {f32({2, 40, 3, 5})}, by("CRD")},
    };
  };
  return d;
}

}  // namespace cuvil::ops
