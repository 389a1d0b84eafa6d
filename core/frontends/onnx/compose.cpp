#include "core/frontends/onnx/compose.h"

#include <numeric>

namespace cuvil::frontends::onnx {

using V = Compose::V;

V Compose::size(const Dim& dim) const {
  if (dim.is_const()) return scalar(DType::i64, static_cast<double>(dim.value()));
  return op("Sizes", {}, {{"values", Shape{dim}}, {"shape", Shape{}}});
}

V Compose::reshape(V x, Shape shape) const {
  if (x->type.shape == shape) return x;
  return op("Reshape", {x}, {{"shape", std::move(shape)}});
}

V Compose::squeeze(V x, int64_t axis) const {
  Shape shape = x->type.shape;
  shape.erase(shape.begin() + axis);
  return reshape(x, std::move(shape));
}

V Compose::unsqueeze(V x, int64_t axis) const {
  Shape shape = x->type.shape;
  shape.insert(shape.begin() + axis, Dim(1));
  return reshape(x, std::move(shape));
}

V Compose::transpose(V x, Ints perm) const {
  Ints same(perm.size());
  std::iota(same.begin(), same.end(), 0);
  return perm == same ? x : op("Transpose", {x}, {{"perm", std::move(perm)}});
}

V Compose::slice(V x, int64_t axis, const Dim& begin, const Dim& size, int64_t step) const {
  const Shape& shape = x->type.shape;
  Shape first(shape.size(), Dim(0)), sizes(shape);
  Ints steps(shape.size(), 1);
  const auto a = static_cast<size_t>(axis);
  first[a] = begin;
  sizes[a] = size;
  steps[a] = step;
  return op("Slice", {x}, {{"begin", first}, {"size", sizes}, {"step", steps}});
}

V Compose::expand(V x, Shape shape) const {
  if (x->type.shape == shape) return x;
  return op("Expand", {x}, {{"shape", std::move(shape)}});
}

V Compose::reduce_all(std::string_view name, V x) const {
  Ints axes(x->type.shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  return axes.empty() ? x : reduce(name, x, std::move(axes), false);
}

/// A running sum of ones, so that the length may be symbolic.
V Compose::count(const Dim& n, DType dtype) const {
  if (n.is_const() && n.value() <= 4096) {
    Ints values(static_cast<size_t>(n.value()));
    std::iota(values.begin(), values.end(), 0);
    return cast(c_.ints_constant(values), dtype);
  }
  return op("CumSum", {filled(dtype, 1, {n})}, {{"axis", int64_t{0}}, {"exclusive", int64_t{1}}});
}

}  // namespace cuvil::frontends::onnx
