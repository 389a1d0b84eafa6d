#include "core/ops/define.h"

#include <algorithm>

#include "core/base/error.h"

namespace cuvil::ops {

std::vector<DType> all_dtypes() {
  std::vector<DType> all;
  for (int i = 0; i < kDTypeCount; ++i) all.push_back(static_cast<DType>(i));
  return all;
}
std::vector<DType> float_dtypes() { return {DType::f32, DType::f16, DType::bf16}; }
std::vector<DType> real_dtypes() { return {DType::f32, DType::f64, DType::f16, DType::bf16}; }
std::vector<DType> int_dtypes() {
  return {DType::i64, DType::i32, DType::i16, DType::i8, DType::u64, DType::u32, DType::u16, DType::u8};
}
std::vector<DType> float_or_int_dtypes() {
  std::vector<DType> all = float_dtypes();
  for (DType t : int_dtypes()) all.push_back(t);
  return all;
}
std::vector<DType> number_dtypes() {
  std::vector<DType> all = real_dtypes();
  for (DType t : int_dtypes()) all.push_back(t);
  return all;
}

Shape broadcast(const InferContext& c, const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const size_t shift = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    Dim& x = result[i + shift];
    const Dim& y = shorter[i];
    if (x == y || y.as_const() == 1) continue;
    if (x.as_const() == 1) {
      x = y;
      continue;
    }
    c.require_equal(x, y, "shapes " + to_string(a) + " and " + to_string(b) + " do not broadcast");
    if (y.is_const()) x = y;
  }
  return result;
}

void same_dtype(const InferContext& c, size_t i) {
  if (c.in(i).dtype != c.in(0).dtype) c.fail("inputs 0 and " + std::to_string(i) + " differ in element type");
}
void need_dtype(const InferContext& c, size_t i, DType dtype) {
  if (c.in(i).dtype != dtype) c.fail("input " + std::to_string(i) + " must be of " + std::string(name_of(dtype)));
}
void need_rank(const InferContext& c, size_t i, int rank) {
  if (c.in(i).rank() != rank)
    c.fail("input " + std::to_string(i) + " must have " + std::to_string(rank) + " dimensions");
}

int axis_of(const InferContext& c, int64_t axis, int rank, std::string_view name) {
  if (axis < -rank || axis >= rank)
    c.fail(std::string(name) + " " + std::to_string(axis) + " is outside of a rank of " + std::to_string(rank));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::vector<int> axes_of(const InferContext& c, const std::vector<int64_t>& axes, int rank) {
  std::vector<int> result;
  for (int64_t a : axes) result.push_back(axis_of(c, a, rank, "axes entry"));
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) c.fail("an axis occurs twice in axes");
  return result;
}

int axis_of(const ir::Node& node, int rank, std::string_view name) {
  const int64_t axis = node.attr<int64_t>(name);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

OpDef unary(std::string_view name, std::string_view doc, std::vector<DType> dtypes) {
  OpDef d;
  d.name = name;
  d.doc = doc;
  d.inputs = {{"x", "any shape"}};
  d.outputs = {{"y", "shape of x"}};
  d.traits = kElementwise | kBlockable | kPure;
  d.dtypes = std::move(dtypes);
  d.infer = [](const InferContext& c) { return std::vector<ir::Type>{{c.in(0).dtype, c.in(0).shape, {}}}; };
  return d;
}

OpDef binary(std::string_view name, std::string_view doc, std::vector<DType> dtypes) {
  OpDef d = unary(name, doc, std::move(dtypes));
  d.inputs = {{"a", "any shape"}, {"b", "broadcast against a"}};
  d.outputs = {{"y", "broadcast shape"}};
  d.infer = [](const InferContext& c) {
    same_dtype(c, 1);
    return std::vector<ir::Type>{{c.in(0).dtype, broadcast(c, c.in(0).shape, c.in(1).shape), {}}};
  };
  return d;
}

OpDef comparison(std::string_view name, std::string_view doc, std::vector<DType> dtypes) {
  OpDef d = binary(name, doc, std::move(dtypes));
  d.infer = [](const InferContext& c) {
    same_dtype(c, 1);
    return std::vector<ir::Type>{{DType::boolean, broadcast(c, c.in(0).shape, c.in(1).shape), {}}};
  };
  return d;
}

std::vector<AttrSpec> set_symbols() {
  return {required("sets", AttrKind::strings, "the symbol that the node sets"),
          required("upper", AttrKind::shape, "the largest value of the symbol")};
}

Dim symbol_of(const InferContext& c) {
  const auto& names = c.node.attr<std::vector<std::string>>("sets");
  if (names.size() != 1 || c.node.attr<Shape>("upper").size() != 1) c.fail("needs one symbol and its bound");
  return Dim::symbol(names[0]);
}

AttrSpec required(std::string_view name, AttrKind kind, std::string_view doc) { return {name, kind, doc, true, {}}; }
AttrSpec optional(std::string_view name, AttrKind kind, std::string_view doc, ir::Attribute fallback) {
  return {name, kind, doc, false, std::move(fallback)};
}
AttrSpec absent_ok(std::string_view name, AttrKind kind, std::string_view doc) {
  return {name, kind, doc, false, std::nullopt};
}

ir::Type of(DType dtype, Shape shape) { return {dtype, std::move(shape), {}}; }
ir::Type f32(Shape shape) { return of(DType::f32, std::move(shape)); }
ir::Type i64(Shape shape) { return of(DType::i64, std::move(shape)); }

std::vector<Sample> unary_samples(std::vector<double> values, std::vector<double> expected, double tolerance,
                                  ir::Attributes attributes, std::vector<double> range) {
  const Dim n = static_cast<int64_t>(values.size());
  return {{"by_hand", {f32({n})}, attributes, {std::move(values)}, std::move(expected), tolerance, range},
          {"scalar", {f32({})}, attributes, {}, {}, tolerance, range},
          {"empty", {f32({0, 3})}, attributes, {}, {}, tolerance, range},
          {"remainder", {f32({2, 3, 17})}, attributes, {}, {}, tolerance, range},
          {"image", {f32({2, 20, 5, 7})}, attributes, {}, {}, tolerance, range}};
}

std::vector<Sample> unary_samples(DType dtype, std::vector<double> values, std::vector<double> expected) {
  const Dim n = static_cast<int64_t>(values.size());
  return {{"by_hand", {of(dtype, {n})}, {}, {std::move(values)}, std::move(expected)},
          {"remainder", {of(dtype, {2, 3, 17})}}};
}

void append(std::vector<Sample>& all, std::vector<Sample> more, const std::string& prefix) {
  for (Sample& s : more) {
    s.name = prefix + s.name;
    all.push_back(std::move(s));
  }
}

std::vector<Sample> binary_samples(DType dtype, std::vector<double> a, std::vector<double> b,
                                   std::vector<double> expected) {
  const Dim n = static_cast<int64_t>(a.size());
  return {{"by_hand", {of(dtype, {n}), of(dtype, {n})}, {}, {std::move(a), std::move(b)}, std::move(expected)},
          {"scalar", {of(dtype, {2, 3, 17}), of(dtype, {})}},
          {"row", {of(dtype, {5, 19}), of(dtype, {19})}},
          {"column", {of(dtype, {5, 1}), of(dtype, {1, 19})}},
          {"empty", {of(dtype, {0, 3}), of(dtype, {3})}},
          {"channel", {of(dtype, {2, 20, 5, 7}), of(dtype, {20, 1, 1})}},
          {"image", {of(dtype, {2, 20, 5, 7}), of(dtype, {2, 20, 5, 7})}},
          {"squeeze", {of(dtype, {2, 32, 3, 5}), of(dtype, {2, 32, 1, 1})}}};
}

}  // namespace cuvil::ops
