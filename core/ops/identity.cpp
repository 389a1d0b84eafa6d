#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_identity() {
  OpDef d = unary("Identity", "y = x.", all_dtypes());
  d.fold = [](ir::Graph&, ir::Node& node) -> ir::Value* { return node.input(0); };
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return x[0]; };
  d.samples = [] { return unary_samples({-1, 0, 2.5}, {-1, 0, 2.5}); };
  return d;
}

}  // namespace cuvil::ops
