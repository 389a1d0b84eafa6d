// What the Reduce* operators share.
#pragma once

#include <functional>

#include "core/ops/define.h"
#include "core/ops/loops.h"

namespace cuvil::ops {

/// One pass over the reduced elements: op over map(x) from its neutral element, then finish(total, count).
struct Reduction {
  kernel::Op op = kernel::Op::add;
  std::function<kernel::Expr(kernel::Expr)> map;                               ///< null: x itself
  std::function<kernel::Expr(kernel::Expr total, kernel::Expr count)> finish;  ///< null: the total; count is i64
};
/// The neutral element of add, mul, min or max: what an empty reduction gives.
kernel::Expr neutral_of(kernel::Op op, DType dtype);

/// Schema, type rule (attributes axes and keepdims), traits and shapes to test. Name and lowering are the caller's.
OpDef reduction(std::string_view name, std::string_view doc, std::vector<DType> dtypes);
/// With the lowering of a Reduction.
OpDef reduction(std::string_view name, std::string_view doc, std::vector<DType> dtypes, Reduction how);

/// The reduced axes of a node, sorted.
std::vector<int> reduced_axes(const ir::Node& node);
/// Where a kept position goes in the result: without the reduced axes unless keepdims is set.
Coords result_coords(const ir::Node& node, const Coords& kept);
/// Shapes and axes every reduction must take; `values` of shape [2, 3] reduced over axis 1.
std::vector<Sample> reduction_samples(std::vector<double> values, std::vector<double> expected,
                                      DType dtype = DType::f32, std::vector<double> range = {-2, 2});

}  // namespace cuvil::ops
