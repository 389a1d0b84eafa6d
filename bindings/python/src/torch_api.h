// What the module needs of PyTorch, found at run time: it is not linked against it.
#pragma once

#include "bindings/python/src/bindings.h"
#include "core/abi/dlpack.h"

namespace cuvil::python {

/// Entry points of an imported PyTorch; `get()` loads them once. Throws ImportError if PyTorch is not importable.
struct TorchApi {
  PyTypeObject* tensor = nullptr;
  PyTypeObject* parameter = nullptr;
  PyObject* empty_strided = nullptr;    ///< (sizes, strides, dtype) -> tensor on the CPU
  PyObject* get_num_threads = nullptr;  ///< () -> int
  /// DLPack's C exchange: describes a tensor without owning it; null if this PyTorch has none.
  int (*describe)(void* tensor, DLTensor* out) = nullptr;

  static const TorchApi& get();
  /// Whether the object is a plain tensor: of no subclass with a meaning of its own.
  bool is_plain(PyObject* o) const { return Py_TYPE(o) == tensor || Py_TYPE(o) == parameter; }
};

}  // namespace cuvil::python
