#include "core/ops/reduction.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/window.h"

namespace cuvil::ops {

using kernel::Expr;
namespace k = cuvil::kernel;

Expr neutral_of(k::Op op, DType dtype) {
  const k::Type type{dtype, 1};
  if (op == k::Op::add) return k::constant(type, 0);
  if (op == k::Op::mul) return k::constant(type, 1);
  const bool max = op == k::Op::max;
  if (is_float(dtype)) return k::const_float(type, max ? -INFINITY : INFINITY);
  if (dtype == DType::boolean) return k::const_int(type, max ? 0 : 1);
  const int bits = size_of(dtype) * 8;
  if (!is_signed_int(dtype))
    return k::const_int(type, max ? 0 : bits == 64 ? -1 : static_cast<int64_t>((uint64_t{1} << bits) - 1));
  const int64_t lowest = bits == 64 ? std::numeric_limits<int64_t>::min() : -(int64_t{1} << (bits - 1));
  return k::const_int(type, max ? lowest : -(lowest + 1));
}

std::vector<int> reduced_axes(const ir::Node& node) {
  const int rank = node.input(0)->type.rank();
  std::vector<int> axes;
  for (int64_t a : node.attr<Ints>("axes")) axes.push_back(static_cast<int>(a < 0 ? a + rank : a));
  std::sort(axes.begin(), axes.end());
  return axes;
}

Coords result_coords(const ir::Node& node, const Coords& kept) {
  return node.attr<int64_t>("keepdims") != 0 ? kept : drop_axes(kept, reduced_axes(node));
}

OpDef reduction(std::string_view name, std::string_view doc, std::vector<DType> dtypes) {
  OpDef d;
  d.name = name;
  d.doc = doc;
  d.inputs = {{"x", "any shape"}};
  d.outputs = {{"y", "x's shape with the reduced axes gone, or 1"}};
  d.attributes = {required("axes", AttrKind::integers, "axes that are reduced; none: nothing is"),
                  optional("keepdims", AttrKind::integer, "1: reduced axes stay, with extent 1", int64_t{1})};
  d.traits = kReduction | kBlockable | kEpilogueOk | kPure;
  d.dtypes = std::move(dtypes);
  d.infer = [](const InferContext& c) {
    const std::vector<int> axes = axes_of(c, c.node.attr<Ints>("axes"), c.in(0).rank());
    const bool keep = c.node.attr<int64_t>("keepdims") != 0;
    ir::Type out{c.in(0).dtype, {}, {}};
    for (int a = 0; a < c.in(0).rank(); ++a) {
      if (std::find(axes.begin(), axes.end(), a) == axes.end())
        out.shape.push_back(c.in(0).shape[static_cast<size_t>(a)]);
      else if (keep)
        out.shape.push_back(1);
    }
    return std::vector<ir::Type>{out};
  };
  d.flops = [](const ir::Node& n) { return num_elements(n.input(0)->type.shape); };
  return d;
}

OpDef reduction(std::string_view name, std::string_view doc, std::vector<DType> dtypes, Reduction how) {
  OpDef d = reduction(name, doc, std::move(dtypes));
  d.lower = [how = std::move(how)](LowerContext& c) {
    const ir::Node& node = c.node();
    const bool truth = c.in_type(0).dtype == DType::boolean;  // there is no min and max of those in vectors
    const DType dtype = truth ? DType::u8 : accumulator_type(c.in_type(0).dtype);
    ReduceNest nest(c, c.in_type(0), reduced_axes(node));
    const Expr count = c.dim(nest.count());
    nest.for_each_kept([&](const Coords& kept) {
      Expr total = nest.fold(kept, how.op, neutral_of(how.op, dtype), [&](const Coords& at) {
        const Expr x = k::cast({dtype, 1}, c.load(0, at));
        return how.map ? how.map(x) : x;
      });
      if (how.finish) total = how.finish(total, count);
      if (truth) total = k::cast({DType::boolean, 1}, total);
      c.store(result_coords(node, kept), total);
    });
  };
  return d;
}

std::vector<Sample> reduction_samples(std::vector<double> values, std::vector<double> expected, DType dtype,
                                      std::vector<double> range) {
  const auto over = [](Ints axes, int64_t keep) {
    return ir::Attributes{{"axes", std::move(axes)}, {"keepdims", keep}};
  };
  std::vector<Sample> all = {
      {"by_hand", {of(dtype, {2, 3})}, over({1}, 0), {std::move(values)}, std::move(expected)},
      {"rows", {of(dtype, {5, 37})}, over({-1}, 1)},
      {"columns", {of(dtype, {7, 19})}, over({0}, 1)},
      {"middle", {of(dtype, {3, 7, 5})}, over({1}, 0)},
      {"all", {of(dtype, {3, 4, 5})}, over({0, 1, 2}, 0)},
      {"none", {of(dtype, {3, 5})}, over({}, 1)},
      {"outer", {of(dtype, {3, 4, 18})}, over({0, 2}, 1)},
      {"image", {of(dtype, {2, 20, 5, 7})}, over({2, 3}, 1)},
      {"channels", {of(dtype, {2, 20, 3, 5})}, over({1}, 1)},
      {"scalar", {of(dtype, {})}, over({}, 0)},
      {"empty", {of(dtype, {0, 3})}, over({1}, 0)},
  };
  for (Sample& s : all) s.range = range;
  return all;
}

}  // namespace cuvil::ops
