// Constant tensors. Bytes are shared, never copied: mapped from a model file, owned, or borrowed from a framework.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/ir/type.h"

namespace cuvil::ir {

/// An immutable tensor with a static shape; `data` covers type.bytes() bytes laid out as type.layout says.
struct Tensor {
  Type type;
  std::shared_ptr<const void> data;  ///< keeps the memory alive; alignment is only that of a byte

  int64_t bytes() const;
  const uint8_t* raw() const { return static_cast<const uint8_t*>(data.get()); }
  /// Element i (of the physical order) converted. Fine for small tensors (axes, shapes), slow for weights.
  double as_double(int64_t i) const;
  int64_t as_int(int64_t i) const;
  std::vector<int64_t> to_ints() const;

  static Tensor from_bytes(Type type, std::vector<uint8_t> bytes);
  static Tensor from_ints(const std::vector<int64_t>& values);               ///< 1-d i64
  static Tensor from_floats(Shape shape, const std::vector<float>& values);  ///< f32
  static Tensor scalar(DType dtype, double value);                           ///< 0-d
  /// Uninitialised memory aligned to 64 bytes, for a producer that fills it before sharing: {tensor, writable pointer}.
  static std::pair<Tensor, uint8_t*> allocate(Type type);
};

/// Same type and bit-equal contents.
bool equal(const Tensor& a, const Tensor& b);

}  // namespace cuvil::ir
