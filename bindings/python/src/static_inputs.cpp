#include "bindings/python/src/static_inputs.h"

#include <algorithm>
#include <cstring>
#include <utility>

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

template <class T>
T load(const void* base, size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(base) + offset, sizeof(T));
  return value;
}

/// Not zero if any of the words differs. Unrolled: a loop of 13 rounds costs more than what it compares.
template <size_t... kIndex>
uint64_t differing_words(const uint64_t* words, const char* memory, std::index_sequence<kIndex...>) {
  return (... | (words[kIndex] ^ load<uint64_t>(memory, kIndex * sizeof(uint64_t))));
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
    if (!add_direct(e)) entries_.push_back(std::move(e));
  }
}

bool StaticInputs::same(const Entry& e) {
  DLTensor t;
  if (version_of(e.tensor.ptr()) != e.version || !describe(e.tensor.ptr(), &t)) return false;
  return t.data == e.data && t.dtype.code == e.dtype.code && t.dtype.bits == e.dtype.bits &&
         static_cast<size_t>(t.ndim) == e.shape.size() && std::equal(e.shape.begin(), e.shape.end(), t.shape) &&
         (e.strides.empty() || !t.strides || std::equal(e.strides.begin(), e.strides.end(), t.strides));
}

bool StaticInputs::add_direct(const Entry& e) {
  const TensorLayout& l = TensorLayout::get();
  if (!l.valid || e.shape.size() > TensorLayout::kMaxRank) return false;
  Direct d{};
  d.tensor = e.tensor.ptr();
  d.argument = static_cast<uint32_t>(e.argument);
  d.impl = load<const char*>(d.tensor, l.impl);
  d.storage = load<const char*>(d.impl, l.storage);
  d.counter = load<const char*>(d.impl, l.counter);
  d.data = load<const void*>(d.storage, l.data);
  d.version = load<uint32_t>(d.counter, l.version);
  d.dtype = load<uint16_t>(d.impl, l.dtype);
  std::memcpy(d.shape, d.impl + l.shape, sizeof(d.shape));
  if (d.version != static_cast<uint32_t>(e.version)) return false;
  direct_.push_back(d);
  kept_.push_back(e.tensor);
  return true;
}

bool StaticInputs::same(const Direct& d, const TensorLayout& l) {
  // Differences are collected, not branched on: hundreds of tensors are compared per call, and all of them are equal.
  const auto differs = [](const void* a, const void* b) {
    return reinterpret_cast<uintptr_t>(a) ^ reinterpret_cast<uintptr_t>(b);
  };
  uint64_t difference = differs(load<const char*>(d.tensor, l.impl), d.impl);
  if (difference) return false;  // the rest would read another tensor's, or nobody's, memory
  difference = differs(load<const char*>(d.impl, l.counter), d.counter);
  difference |= differs(load<const char*>(d.impl, l.storage), d.storage);
  if (difference) return false;
  difference = load<uint32_t>(d.counter, l.version) ^ d.version;
  difference |= differs(load<const void*>(d.storage, l.data), d.data);
  difference |= load<uint16_t>(d.impl, l.dtype) ^ d.dtype;
  difference |= differing_words(d.shape, d.impl + l.shape, std::make_index_sequence<TensorLayout::kShapeWords>());
  return difference == 0;
}

bool StaticInputs::unchanged(PyObject* const* args, size_t count) const {
  const TensorLayout& l = TensorLayout::get();
  for (const Direct& d : direct_)
    if (d.argument >= count || args[d.argument] != d.tensor || !same(d, l)) return false;
  for (const Entry& e : entries_)
    if (e.argument >= count || args[e.argument] != e.tensor.ptr() || !same(e)) return false;
  return true;
}

}  // namespace cuvil::python
