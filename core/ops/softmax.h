// What Softmax, LogSoftmax and Hardmax share.
#pragma once

#include "core/ops/define.h"
#include "core/ops/loops.h"

namespace cuvil::ops {

OpDef softmax_like(std::string_view name, std::string_view doc);
/// Maximum of a row, and the sum of e^(x - maximum).
struct SoftmaxRow {
  kernel::Expr max, sum;
};
SoftmaxRow softmax_row(LowerContext& c, ReduceNest& nest, const Coords& kept);
std::vector<Sample> softmax_samples(std::vector<double> expected);

}  // namespace cuvil::ops
