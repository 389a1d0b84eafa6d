// Where PyTorch's tensors keep what StaticInputs compares, so that a check takes nanoseconds and no call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bindings/python/src/bindings.h"

namespace cuvil::python {

/// Offsets inside at::Tensor's Python object, TensorImpl, StorageImpl and VersionCounter. They are not declared
/// anywhere that a wheel could rely on: `find` measures them on tensors whose values it knows through PyTorch's public
/// attributes, and gives up (valid = false) where anything is not exactly as expected; callers then use the attributes.
struct TensorLayout {
  bool valid = false;
  size_t impl = 0;     ///< Python object -> TensorImpl*
  size_t storage = 0;  ///< TensorImpl -> StorageImpl*
  size_t counter = 0;  ///< TensorImpl -> VersionCounter*
  size_t version = 0;  ///< VersionCounter -> uint32 version
  size_t data = 0;     ///< StorageImpl -> void* data
  size_t shape = 0;    ///< TensorImpl -> kShapeWords words: rank, sizes, strides, offset, number of elements
  size_t dtype = 0;    ///< TensorImpl -> uint16
  static constexpr int kMaxRank = 5;  ///< tensors of more axes keep their sizes elsewhere
  static constexpr size_t kShapeWords = 1 + 2 * kMaxRank + 2;

  static const TensorLayout& get();
};

}  // namespace cuvil::python
