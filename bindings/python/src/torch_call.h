// Calls from PyTorch's compiled frames with as little work per call as possible.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "bindings/python/src/model.h"
#include "bindings/python/src/static_inputs.h"

namespace cuvil::python {

/// A model as a function of PyTorch tensors: which arguments are its inputs, and what is returned.
class TorchCall {
 public:
  /// One returned value: result `index` of the model (`dtype`, and its axes in PyTorch's order), argument `index`, or
  /// `value` as it is.
  struct Output {
    enum class Kind : uint8_t { result, argument, value } kind = Kind::value;
    size_t index = 0;
    nb::object value;           ///< result: the dtype
    std::vector<int> permute;   ///< result: axis of the model's result for each of PyTorch's axes; empty = the same
    nb::object sizes, strides;  ///< result: tuples, if they are always the same
  };

  /// `threads`: at most this many, 0 = as many as PyTorch uses at the time of the call.
  TorchCall(nb::object model, std::vector<size_t> inputs, const nb::list& outputs,
            std::shared_ptr<StaticInputs> statics, int threads);

  /// New reference to the tuple of outputs. Null without a Python error if the arguments are not what this call is
  /// for (a changed static input, a tensor subclass, an unexpected shape); null with an error if running failed.
  PyObject* operator()(PyObject* const* args, size_t count) const;

  const std::shared_ptr<StaticInputs>& statics() const { return statics_; }

 private:
  struct Frame;
  bool read_inputs(PyObject* const* args, size_t count, Frame& f) const;
  PyObject* allocate(const Output& o, const int64_t* dims) const;

  nb::object model_object_;
  Model* model_;
  std::vector<size_t> inputs_;
  std::vector<Output> outputs_;
  std::vector<const Output*> results_;  ///< by result of the model; null: nobody wants it
  std::shared_ptr<StaticInputs> statics_;
  int threads_;
  bool fixed_ = true;  ///< all results have shapes that do not depend on the inputs
};

/// What PyTorch calls: the current target if its arguments fit, else `slow(*args)`. The target may change at any time.
struct Dispatch {
  nb::object slow;
  std::shared_ptr<TorchCall> target;
  nb::object function;  ///< instead of a target: called if `statics` are unchanged
  std::shared_ptr<StaticInputs> statics;

  PyObject* call(PyObject* const* args, size_t count) const;
};

}  // namespace cuvil::python
