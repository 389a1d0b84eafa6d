// Reductions, argmin/argmax, cumulative sums.
#include "core/frontends/onnx/context.h"

namespace cuvil::frontends::onnx {
namespace {

using Ints = std::vector<int64_t>;

/// Axes are an attribute at first, an input since opset 18 (ReduceSum: 13); none means all, or nothing at all with
/// noop_with_empty_axes.
void reduce(OpContext& c) {
  const std::string_view op = c.proto.op_type;
  const int rank = c.rank(0);
  const int64_t input_since = op == "ReduceSum" ? 13 : 18;
  Ints axes = c.attr_ints("axes", {});
  if (c.opset >= input_since && c.has(1)) axes = c.ints(1, "axes");
  if (axes.empty() && c.attr_int("noop_with_empty_axes", 0) != 0) {
    c.out(0, c.b.add("Identity", {c.in(0)}, {}, c.out_name()));
    return;
  }
  if (axes.empty())
    for (int i = 0; i < rank; ++i) axes.push_back(i);
  for (int64_t& a : axes) a = c.axis(a, rank);
  c.out(0,
        c.b.add(op, {c.in(0)}, {{"axes", axes}, {"keepdims", int64_t{c.attr_int("keepdims", 1) != 0}}}, c.out_name()));
}

void arg(OpContext& c) {
  c.out(0, c.b.add(c.proto.op_type, {c.in(0)},
                   {{"axis", c.axis(c.attr_int("axis", 0), c.rank(0))},
                    {"keepdims", int64_t{c.attr_int("keepdims", 1) != 0}},
                    {"select_last_index", int64_t{c.attr_int("select_last_index", 0) != 0}}},
                   c.out_name()));
}

void cumulative(OpContext& c) {
  const Ints axis = c.ints(1, "the axis");
  if (axis.size() != 1) c.malformed(std::string(c.proto.op_type) + " takes one axis");
  c.out(0, c.b.add(c.proto.op_type, {c.in(0)},
                   {{"axis", c.axis(axis[0], c.rank(0))},
                    {"exclusive", int64_t{c.attr_int("exclusive", 0) != 0}},
                    {"reverse", int64_t{c.attr_int("reverse", 0) != 0}}},
                   c.out_name()));
}

const Mapping kMappings[] = {
    {"ReduceSum", reduce},       {"ReduceMean", reduce},      {"ReduceMax", reduce}, {"ReduceMin", reduce},
    {"ReduceProd", reduce},      {"ReduceL1", reduce},        {"ReduceL2", reduce},  {"ReduceLogSum", reduce},
    {"ReduceLogSumExp", reduce}, {"ReduceSumSquare", reduce}, {"ArgMax", arg},       {"ArgMin", arg},
    {"CumSum", cumulative},      {"CumProd", cumulative},
};

}  // namespace

std::span<const Mapping> reduction_mappings() { return kMappings; }

}  // namespace cuvil::frontends::onnx
