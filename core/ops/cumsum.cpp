#include "core/ops/cumulative.h"

namespace cuvil::ops {

OpDef define_cumsum() {
  OpDef d = cumulative("CumSum", "y[.., i, ..] = x[.., 0, ..] + ... + x[.., i, ..] along axis.", kernel::Op::add, 0);
  d.samples = [] {
    const auto over = [](int64_t axis, int64_t exclusive, int64_t reverse) {
      return ir::Attributes{{"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}};
    };
    return std::vector<Sample>{
        {"by_hand", {f32({2, 3})}, over(1, 0, 0), {{1, 2, 3, 4, 5, 6}}, {1, 3, 6, 4, 9, 15}},
        {"exclusive", {f32({4})}, over(0, 1, 0), {{1, 2, 3, 4}}, {0, 1, 3, 6}},
        {"reverse", {f32({4})}, over(0, 0, 1), {{1, 2, 3, 4}}, {10, 9, 7, 4}},
        {"columns", {i64({5, 19})}, over(0, 1, 1)},
        {"image", {f32({2, 20, 3, 5})}, over(1, 0, 0)},
    };
  };
  return d;
}

}  // namespace cuvil::ops
