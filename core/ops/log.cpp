#include <cmath>

#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_log() {
  OpDef d = unary("Log", "y = ln x; -inf at 0, NaN below.", real_dtypes());
  d.expr = [](const ir::Node&, std::span<const kernel::Expr> x) { return kernel::make(kernel::Op::log, {x[0]}); };
  d.samples = [] {
    return unary_samples({0, 0.5, 1, 10, -1}, {-INFINITY, -0.693147181, 0, 2.30258509, NAN}, 1e-05, {}, {0.01, 4});
  };
  return d;
}

}  // namespace cuvil::ops
