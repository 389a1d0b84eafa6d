// C++ over cuvil/runtime.h: owners that close themselves, errors as exceptions. Header-only.
//
//   cuvil::Model model = cuvil::Model::open("model.cvl");
//   cuvil::Context context(model);
//   std::vector<cuvil::Tensor> outputs = context.run({cuvil::view(pixels.data(), {1, 3, 224, 224})});
#ifndef CUVIL_CUVIL_HPP_
#define CUVIL_CUVIL_HPP_

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cuvil/runtime.h"

namespace cuvil {

/// what() is the runtime's message, status() its kind.
class RuntimeError : public std::runtime_error {
 public:
  RuntimeError(cuvil_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  cuvil_status status() const { return status_; }

 private:
  cuvil_status status_;
};

inline void check(cuvil_status status) {
  if (status != CUVIL_OK)
    throw RuntimeError(status, std::string(cuvil_status_name(status)) + ": " + cuvil_last_error());
}

/// Element type of a C++ number.
template <class T>
struct dtype_of;
template <>
struct dtype_of<float> {
  static constexpr DLDataType value = {kDLFloat, 32, 1};
};
template <>
struct dtype_of<double> {
  static constexpr DLDataType value = {kDLFloat, 64, 1};
};
template <>
struct dtype_of<int64_t> {
  static constexpr DLDataType value = {kDLInt, 64, 1};
};
template <>
struct dtype_of<int32_t> {
  static constexpr DLDataType value = {kDLInt, 32, 1};
};
template <>
struct dtype_of<uint8_t> {
  static constexpr DLDataType value = {kDLUInt, 8, 1};
};
template <>
struct dtype_of<bool> {
  static constexpr DLDataType value = {6 /* DLPack's bool */, 8, 1};
};

/// Contiguous row-major memory of the caller, with its shape.
class View {
 public:
  View(void* data, DLDataType dtype, std::vector<int64_t> shape) : shape_(std::move(shape)) {
    tensor_.data = data;
    tensor_.device.device_type = kDLCPU;
    tensor_.ndim = static_cast<int32_t>(shape_.size());
    tensor_.dtype = dtype;
  }
  const std::vector<int64_t>& shape() const { return shape_; }
  /// For the C API; valid as long as the view is.
  DLTensor* get() const {
    tensor_.shape = const_cast<int64_t*>(shape_.data());
    return &tensor_;
  }

 private:
  std::vector<int64_t> shape_;
  mutable DLTensor tensor_ = {};
};

template <class T>
View view(T* data, std::vector<int64_t> shape) {
  using Element = std::remove_const_t<T>;  // inputs are only read
  return View(const_cast<Element*>(data), dtype_of<Element>::value, std::move(shape));
}

/// An output in memory of its own.
class Tensor {
 public:
  explicit Tensor(DLManagedTensor* owned) : owned_(owned, [](DLManagedTensor* t) { t->deleter(t); }) {}
  std::vector<int64_t> shape() const {
    return {owned_->dl_tensor.shape, owned_->dl_tensor.shape + owned_->dl_tensor.ndim};
  }
  int64_t size() const {
    int64_t n = 1;
    for (int64_t d : shape()) n *= d;
    return n;
  }
  DLDataType dtype() const { return owned_->dl_tensor.dtype; }
  /// Contiguous elements in row-major order.
  const void* raw() const { return owned_->dl_tensor.data; }
  /// Throws if the elements are no T.
  template <class T>
  const T* data() const {
    const DLDataType want = dtype_of<T>::value, have = dtype();
    if (want.code != have.code || want.bits != have.bits)
      throw RuntimeError(CUVIL_SHAPE_ERROR, "ShapeError: the tensor has another element type");
    return static_cast<const T*>(owned_->dl_tensor.data);
  }

 private:
  std::shared_ptr<DLManagedTensor> owned_;
};

class Model {
 public:
  static Model open(const std::string& path, const cuvil_open_options& options = {}) {
    cuvil_model* model = nullptr;
    check(cuvil_open_file(path.c_str(), &options, &model));
    return Model(model);
  }
  /// The memory must stay unchanged as long as the model lives.
  static Model open(const void* data, size_t bytes, const cuvil_open_options& options = {}) {
    cuvil_model* model = nullptr;
    check(cuvil_open_memory(data, bytes, &options, &model));
    return Model(model);
  }
  size_t input_count() const { return cuvil_input_count(get()); }
  size_t output_count() const { return cuvil_output_count(get()); }
  const cuvil_tensor_info& input(size_t i) const { return *cuvil_input_info(get(), i); }
  const cuvil_tensor_info& output(size_t i) const { return *cuvil_output_info(get(), i); }
  cuvil_model* get() const { return model_.get(); }

 private:
  explicit Model(cuvil_model* model) : model_(model, cuvil_close) {}
  std::shared_ptr<cuvil_model> model_;
};

/// For one thread at a time.
class Context {
 public:
  /// threads 0: the default of cuvil_context_create.
  explicit Context(const Model& model, int threads = 0) : context_(nullptr, cuvil_context_destroy) {
    cuvil_context* context = nullptr;
    check(cuvil_context_create(model.get(), threads, &context));
    context_.reset(context);
    outputs_ = model.output_count();
  }
  /// Outputs in fresh memory.
  std::vector<Tensor> run(const std::vector<View>& inputs) {
    const std::vector<const DLTensor*> in = pointers<const DLTensor*>(inputs);
    std::vector<DLManagedTensor*> out(outputs_);
    check(cuvil_run_alloc(get(), in.data(), in.size(), out.data(), out.size()));
    return {out.begin(), out.end()};
  }
  /// Into the caller's memory.
  void run(const std::vector<View>& inputs, const std::vector<View>& outputs) {
    const std::vector<const DLTensor*> in = pointers<const DLTensor*>(inputs);
    const std::vector<DLTensor*> out = pointers<DLTensor*>(outputs);
    check(cuvil_run(get(), in.data(), in.size(), out.data(), out.size()));
  }
  cuvil_context* get() const { return context_.get(); }

 private:
  template <class Pointer>
  static std::vector<Pointer> pointers(const std::vector<View>& views) {
    std::vector<Pointer> result;
    for (const View& v : views) result.push_back(v.get());
    return result;
  }
  std::unique_ptr<cuvil_context, void (*)(cuvil_context*)> context_;
  size_t outputs_ = 0;
};

}  // namespace cuvil
#endif  // CUVIL_CUVIL_HPP_
