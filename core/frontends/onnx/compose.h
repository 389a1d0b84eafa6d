// Shorthand for mappings that spell an ONNX operator out in several of CIR's.
#pragma once

#include <vector>

#include "core/frontends/onnx/context.h"

namespace cuvil::frontends::onnx {

class Compose {
 public:
  using V = ir::Value*;
  using Ints = std::vector<int64_t>;
  explicit Compose(OpContext& c) : c_(c) {}

  V op(std::string_view name, std::vector<V> inputs, ir::Attributes attributes = {}) const {
    return c_.b.add(name, std::move(inputs), std::move(attributes));
  }
  /// A 0-d constant.
  V scalar(DType dtype, double value) const { return c_.b.constant(ir::Tensor::scalar(dtype, value)); }
  V like(V x, double value) const { return scalar(x->type.dtype, value); }
  /// A size as a 0-d i64.
  V size(const Dim& dim) const;

  V add(V a, V b) const { return op("Add", {a, b}); }
  V sub(V a, V b) const { return op("Sub", {a, b}); }
  V mul(V a, V b) const { return op("Mul", {a, b}); }
  V div(V a, V b) const { return op("Div", {a, b}); }
  V mul(V a, double factor) const { return factor == 1 ? a : mul(a, like(a, factor)); }
  V where(V condition, V a, V b) const { return op("Where", {condition, a, b}); }
  V cast(V x, DType to) const { return x->type.dtype == to ? x : op("Cast", {x}, {{"to", to}}); }

  V reshape(V x, Shape shape) const;
  /// Without `axis`, whose extent is 1.
  V squeeze(V x, int64_t axis) const;
  /// With a new axis of extent 1 at `axis`.
  V unsqueeze(V x, int64_t axis) const;
  V transpose(V x, Ints perm) const;
  /// `size` elements along `axis` from `begin` in steps of `step`.
  V slice(V x, int64_t axis, const Dim& begin, const Dim& size, int64_t step = 1) const;
  V concat(std::vector<V> parts, int64_t axis) const { return op("Concat", std::move(parts), {{"axis", axis}}); }
  /// A value of this shape from one that broadcasts to it.
  V expand(V x, Shape shape) const;
  V filled(DType dtype, double value, Shape shape) const { return expand(scalar(dtype, value), std::move(shape)); }
  V reduce(std::string_view name, V x, Ints axes, bool keep = true) const {
    return op(name, {x}, {{"axes", std::move(axes)}, {"keepdims", int64_t{keep}}});
  }
  /// Over all axes, to a scalar.
  V reduce_all(std::string_view name, V x) const;
  V matmul(V a, V b, bool transpose_b = false) const {
    return op("MatMul", {a, b}, {{"transpose_b", int64_t{transpose_b}}});
  }
  /// 0, 1, ..., n - 1, where n may be symbolic.
  V count(const Dim& n, DType dtype = DType::i64) const;
  V floats(Shape shape, const std::vector<float>& values) const {
    return c_.b.constant(ir::Tensor::from_floats(std::move(shape), values));
  }

 private:
  OpContext& c_;
};

}  // namespace cuvil::frontends::onnx
