#include <cmath>

#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_isinf() {
  OpDef d = unary("IsInf", "y = x is an infinity of a sign that is asked for.", real_dtypes());
  d.attributes = {optional("detect_negative", AttrKind::integer, "-inf counts", int64_t{1}),
                  optional("detect_positive", AttrKind::integer, "+inf counts", int64_t{1})};
  d.infer = [](const InferContext& c) { return std::vector<ir::Type>{{DType::boolean, c.in(0).shape, {}}}; };
  d.expr = [](const ir::Node& node, std::span<const kernel::Expr> x) {
    const kernel::Type t = x[0].type();
    const kernel::Expr positive = x[0] == kernel::constant(t, INFINITY),
                       negative = x[0] == kernel::constant(t, -INFINITY);
    const bool up = node.attr<int64_t>("detect_positive") != 0, down = node.attr<int64_t>("detect_negative") != 0;
    if (up && down) return positive | negative;
    if (up || down) return up ? positive : negative;
    return kernel::constant({DType::boolean, t.lanes}, 0);
  };
  d.samples = [] { return unary_samples({1, NAN, INFINITY, -INFINITY}, {0, 0, 1, 1}); };
  return d;
}

}  // namespace cuvil::ops
