#include "bindings/python/src/static_inputs.h"

#include <algorithm>

namespace cuvil::python {
namespace {

/// The version counter; -1 and no Python error if there is none.
int64_t version_of(PyObject* tensor) {
  static PyObject* const kName = PyUnicode_InternFromString("_version");
  PyObject* value = PyObject_GetAttr(tensor, kName);
  if (!value) {
    PyErr_Clear();
    return -1;
  }
  const int64_t version = PyLong_AsLongLong(value);
  Py_DECREF(value);
  return version;
}

bool describe(PyObject* tensor, DLTensor* out) {
  const TorchApi& torch = TorchApi::get();
  if (torch.describe && torch.describe(tensor, out) == 0) return true;
  PyErr_Clear();
  return false;
}

}  // namespace

StaticInputs::StaticInputs(const std::vector<std::pair<size_t, nb::object>>& tensors) {
  for (const auto& [argument, tensor] : tensors) {
    Entry e{argument, tensor, version_of(tensor.ptr()), nullptr, {}, {}, {}};
    DLTensor t;
    if (e.version < 0 || !describe(tensor.ptr(), &t))
      throw nb::value_error("a static input must be a plain tensor on the CPU that counts its versions");
    e.data = t.data;
    e.dtype = t.dtype;
    e.shape.assign(t.shape, t.shape + t.ndim);
    if (t.strides) e.strides.assign(t.strides, t.strides + t.ndim);
    entries_.push_back(std::move(e));
  }
}

bool StaticInputs::same(const Entry& e) {
  DLTensor t;
  if (version_of(e.tensor.ptr()) != e.version || !describe(e.tensor.ptr(), &t)) return false;
  return t.data == e.data && t.dtype.code == e.dtype.code && t.dtype.bits == e.dtype.bits &&
         static_cast<size_t>(t.ndim) == e.shape.size() && std::equal(e.shape.begin(), e.shape.end(), t.shape) &&
         (e.strides.empty() || !t.strides || std::equal(e.strides.begin(), e.strides.end(), t.strides));
}

bool StaticInputs::unchanged(PyObject* const* args, size_t count) const {
  for (const Entry& e : entries_)
    if (e.argument >= count || args[e.argument] != e.tensor.ptr() || !same(e)) return false;
  return true;
}

}  // namespace cuvil::python
