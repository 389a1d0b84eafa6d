// Weights that compiled code has packed or folded: tensors that must still be what they were.
#pragma once

#include <vector>

#include "bindings/python/src/tensor_layout.h"
#include "bindings/python/src/torch_api.h"

namespace cuvil::python {

/// Arguments of a call that must be these tensors, unchanged: the same objects with the same memory, shape and version.
/// What writes through `.data` of another tensor object does not raise the version; nobody sees it.
class StaticInputs {
 public:
  /// (argument, tensor) each. Tensors of inference mode have no version and cannot be static: ValueError.
  explicit StaticInputs(const std::vector<std::pair<size_t, nb::object>>& tensors);

  bool unchanged(PyObject* const* args, size_t count) const;
  size_t size() const { return entries_.size() + direct_.size(); }

 private:
  struct Entry {
    size_t argument;
    nb::object tensor;
    int64_t version;
    void* data;
    DLDataType dtype;
    std::vector<int64_t> shape;
    std::vector<int64_t> strides;
  };
  /// The same in a form that is compared without a call; see TensorLayout.
  struct Direct {
    PyObject* tensor;
    const char* impl;
    const char* storage;
    const char* counter;
    const void* data;
    uint64_t shape[TensorLayout::kShapeWords];
    uint32_t argument;
    uint32_t version;
    uint16_t dtype;
  };
  static bool same(const Entry& e);
  static bool same(const Direct& d, const TensorLayout& l);
  bool add_direct(const Entry& e);

  std::vector<Entry> entries_;    ///< compared through PyTorch's attributes
  std::vector<Direct> direct_;    ///< compared in place
  std::vector<nb::object> kept_;  ///< the tensors of direct_
};

}  // namespace cuvil::python
