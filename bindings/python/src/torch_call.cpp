#include "bindings/python/src/torch_call.h"

#include <array>

namespace cuvil::python {
namespace {

PyObject* tuple_of(const std::vector<int64_t>& numbers) {
  PyObject* t = PyTuple_New(static_cast<Py_ssize_t>(numbers.size()));
  for (size_t i = 0; t && i < numbers.size(); ++i)
    PyTuple_SET_ITEM(t, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(numbers[i]));
  return t;
}

/// Sizes and strides, in PyTorch's order of axes, of a result that lies row-major in the model's order.
std::pair<nb::object, nb::object> placement(const std::vector<int>& permute, const int64_t* dims, size_t rank) {
  std::vector<int64_t> row_major(rank), sizes(rank), strides(rank);
  int64_t step = 1;
  for (size_t i = rank; i-- > 0;) {
    row_major[i] = step;
    step *= std::max<int64_t>(dims[i], 1);
  }
  for (size_t i = 0; i < rank; ++i) {
    const size_t axis = permute.empty() ? i : static_cast<size_t>(permute[i]);
    sizes[i] = dims[axis];
    strides[i] = row_major[axis];
  }
  return {nb::steal(tuple_of(sizes)), nb::steal(tuple_of(strides))};
}

int torch_threads() {
  PyObject* n = PyObject_CallNoArgs(TorchApi::get().get_num_threads);
  if (!n) {
    PyErr_Clear();
    return 0;
  }
  const long value = PyLong_AsLong(n);
  Py_DECREF(n);
  return static_cast<int>(value);
}

}  // namespace

/// One call's inputs and results. Shapes are copied: another thread may resize a tensor while this one runs.
struct TorchCall::Frame {
  static constexpr size_t kInline = 8;
  std::vector<DLTensor> tensors;
  std::vector<const DLTensor*> pointers;
  std::vector<int64_t> numbers;  ///< shapes, strides, then scalars
};

TorchCall::TorchCall(nb::object model, std::vector<size_t> inputs, const nb::list& outputs,
                     std::shared_ptr<StaticInputs> statics, int threads)
    : model_object_(std::move(model)),
      model_(nb::cast<Model*>(model_object_)),
      inputs_(std::move(inputs)),
      statics_(std::move(statics)),
      threads_(threads) {
  results_.resize(cuvil_output_count(model_->get()), nullptr);
  outputs_.reserve(nb::len(outputs));
  for (nb::handle h : outputs) {
    const auto row = nb::cast<nb::tuple>(h);
    const auto kind = nb::cast<std::string>(row[0]);
    Output o;
    if (kind == "value") {
      o.value = row[1];
    } else {
      o.kind = kind == "result" ? Output::Kind::result : Output::Kind::argument;
      o.index = nb::cast<size_t>(row[1]);
    }
    if (o.kind == Output::Kind::result) {
      o.value = row[2];
      if (!row[3].is_none()) o.permute = nb::cast<std::vector<int>>(row[3]);
      const cuvil_tensor_info* info = cuvil_output_info(model_->get(), o.index);
      if (!info) throw nb::index_error("the model has no such result");
      bool known = true;
      for (int32_t d = 0; d < info->ndim; ++d) known = known && info->dims[d] >= 0;
      if (known) std::tie(o.sizes, o.strides) = placement(o.permute, info->dims, static_cast<size_t>(info->ndim));
      fixed_ = fixed_ && known;
    }
    outputs_.push_back(std::move(o));
  }
  for (const Output& o : outputs_)
    if (o.kind == Output::Kind::result) results_[o.index] = &o;
  for (const Output* o : results_)
    if (!o) throw nb::value_error("every result of the model must be returned");
}

bool TorchCall::read_inputs(PyObject* const* args, size_t count, Frame& f) const {
  const TorchApi& torch = TorchApi::get();
  const size_t n = inputs_.size();
  f.tensors.resize(n);
  f.pointers.resize(n);
  size_t room = 0;
  for (size_t i = 0; i < n; ++i) {
    if (inputs_[i] >= count) return false;
    PyObject* a = args[inputs_[i]];
    DLTensor& t = f.tensors[i];
    if (torch.is_plain(a)) {
      if (torch.describe(a, &t) != 0) {
        PyErr_Clear();
        return false;
      }
      if (t.device.device_type != kDLCPU) return false;
      room += 2 * static_cast<size_t>(t.ndim);
    } else if (PyLong_CheckExact(a)) {
      t = {nullptr, {kDLCPU, 0}, 0, {kDLInt, 64, 1}, nullptr, nullptr, 0};
      room += 1;
    } else if (PyFloat_CheckExact(a)) {
      t = {nullptr, {kDLCPU, 0}, 0, {kDLFloat, 64, 1}, nullptr, nullptr, 0};
      room += 1;
    } else {
      return false;
    }
    f.pointers[i] = &t;
  }
  f.numbers.resize(room);
  int64_t* next = f.numbers.data();
  for (size_t i = 0; i < n; ++i) {
    DLTensor& t = f.tensors[i];
    PyObject* a = args[inputs_[i]];
    if (PyLong_CheckExact(a)) {
      *next = PyLong_AsLongLong(a);
      if (*next == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return false;
      }
      t.data = next++;
    } else if (PyFloat_CheckExact(a)) {
      const double value = PyFloat_AS_DOUBLE(a);
      std::memcpy(next, &value, sizeof(value));
      t.data = next++;
    } else {
      const auto rank = static_cast<size_t>(t.ndim);
      std::copy_n(t.shape, rank, next);
      t.shape = next;
      next += rank;
      if (t.strides) {
        std::copy_n(t.strides, rank, next);
        t.strides = next;
        next += rank;
      }
    }
  }
  return true;
}

PyObject* TorchCall::allocate(const Output& o, const int64_t* dims) const {
  nb::object sizes = o.sizes, strides = o.strides;
  if (!sizes.is_valid()) {
    const auto rank = static_cast<size_t>(cuvil_output_info(model_->get(), o.index)->ndim);
    std::tie(sizes, strides) = placement(o.permute, dims, rank);
  }
  PyObject* const args[] = {sizes.ptr(), strides.ptr(), o.value.ptr()};
  return PyObject_Vectorcall(TorchApi::get().empty_strided, args, 3, nullptr);
}

PyObject* TorchCall::operator()(PyObject* const* args, size_t count) const {
  if (statics_ && !statics_->unchanged(args, count)) return nullptr;
  const TorchApi& torch = TorchApi::get();
  Frame f;
  if (!read_inputs(args, count, f)) return nullptr;

  Model::Lease lease(*model_, threads_ > 0 ? threads_ : torch_threads());
  const size_t n = results_.size();
  std::vector<nb::object> results(n);
  std::vector<DLTensor> tensors(n);
  std::vector<DLTensor*> pointers(n);
  std::vector<int64_t> shapes;
  cuvil_status status = CUVIL_OK;
  if (!fixed_) status = cuvil_prepare(lease.get(), f.pointers.data(), f.pointers.size());
  for (size_t i = 0; i < n && status == CUVIL_OK; ++i) {
    const cuvil_tensor_info* info = cuvil_output_info(model_->get(), i);
    const int64_t* dims = fixed_ ? info->dims : cuvil_output_dims(lease.get(), i);
    results[i] = nb::steal(allocate(*results_[i], dims));
    if (!results[i].is_valid() || torch.describe(results[i].ptr(), &tensors[i]) != 0) return nullptr;
    // The memory is row-major in the model's order of axes, whatever PyTorch calls them.
    tensors[i].ndim = info->ndim;
    tensors[i].shape = const_cast<int64_t*>(dims);
    tensors[i].strides = nullptr;
    pointers[i] = &tensors[i];
  }
  if (status == CUVIL_OK) {
    nb::gil_scoped_release nogil;
    status = cuvil_run(lease.get(), f.pointers.data(), f.pointers.size(), pointers.data(), n);
  }
  if (status != CUVIL_OK) {
    // Shapes or results that this code does not serve: PyTorch can.
    if (status == CUVIL_SHAPE_ERROR || status == CUVIL_UNSUPPORTED_ERROR) return nullptr;
    throw Error(status, cuvil_last_error());
  }
  PyObject* all = PyTuple_New(static_cast<Py_ssize_t>(outputs_.size()));
  for (size_t i = 0; all && i < outputs_.size(); ++i) {
    const Output& o = outputs_[i];
    PyObject* value = o.kind == Output::Kind::result     ? results[o.index].ptr()
                      : o.kind == Output::Kind::argument ? args[o.index]
                                                         : o.value.ptr();
    Py_INCREF(value);
    PyTuple_SET_ITEM(all, static_cast<Py_ssize_t>(i), value);
  }
  return all;
}

PyObject* Dispatch::call(PyObject* const* args, size_t count) const {
  if (const std::shared_ptr<TorchCall> current = target) {
    if (PyObject* result = (*current)(args, count)) return result;
    if (PyErr_Occurred()) return nullptr;
  } else if (function.is_valid() && (!statics || statics->unchanged(args, count))) {
    const nb::object current_function = function;  // may be replaced while it runs
    return PyObject_Vectorcall(current_function.ptr(), args, count, nullptr);
  }
  return PyObject_Vectorcall(slow.ptr(), args, count, nullptr);
}

namespace {

PyObject* call_dispatch(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  try {
    return nb::inst_ptr<Dispatch>(self)->call(args, static_cast<size_t>(count));
  } catch (const std::exception& e) {
    const nb::object type = nb::module_::import_("cuvil.errors").attr("InternalError");
    PyErr_SetString(type.ptr(), e.what());
    return nullptr;
  }
}

PyMethodDef dispatch_method = {"cuvil_region",
                               reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_dispatch)),
                               METH_FASTCALL, "Calls compiled code, or PyTorch where it does not fit."};

// Python's garbage collector sees through a Dispatch: its slow path owns what may, by way of a graph, own it.
int traverse_dispatch(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const auto* d = nb::inst_ptr<Dispatch>(self);
  Py_VISIT(d->slow.ptr());
  Py_VISIT(d->function.ptr());
  return 0;
}

int clear_dispatch(PyObject* self) {
  auto* d = nb::inst_ptr<Dispatch>(self);
  d->slow.reset();
  d->function.reset();
  d->target.reset();
  return 0;
}

PyType_Slot dispatch_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_dispatch)},
                                {Py_tp_clear, reinterpret_cast<void*>(clear_dispatch)},
                                {0, nullptr}};

}  // namespace

void bind_torch(nb::module_& m) {
  nb::class_<StaticInputs>(m, "StaticInputs")
      .def(nb::init<const std::vector<std::pair<size_t, nb::object>>&>(), nb::arg("tensors"))
      .def("__len__", &StaticInputs::size)
      .def_prop_ro_static("direct", [](nb::handle) { return TensorLayout::get().valid; })
      .def(
          "unchanged",
          [](const StaticInputs& s, const nb::tuple& args) {
            std::vector<PyObject*> pointers;
            for (nb::handle h : args) pointers.push_back(h.ptr());
            return s.unchanged(pointers.data(), pointers.size());
          },
          nb::arg("args"));
  nb::class_<TorchCall>(m, "TorchCall")
      .def(nb::init<nb::object, std::vector<size_t>, const nb::list&, std::shared_ptr<StaticInputs>, int>(),
           nb::arg("model"), nb::arg("inputs"), nb::arg("outputs"), nb::arg("statics").none(), nb::arg("num_threads"))
      .def(
          "__call__",
          [](const TorchCall& c, const nb::args& args) -> nb::object {
            std::vector<PyObject*> pointers;
            for (nb::handle h : args) pointers.push_back(h.ptr());
            PyObject* result = c(pointers.data(), pointers.size());
            if (!result && PyErr_Occurred()) throw nb::python_error();
            return result ? nb::steal(result) : nb::none();
          },
          nb::arg("args"), "The tuple of outputs, or None if the arguments are not what the call is for.");
  nb::class_<Dispatch>(m, "Dispatch", nb::is_weak_referenceable(), nb::type_slots(dispatch_slots))
      .def(
          "__init__", [](Dispatch* d, nb::object slow) { new (d) Dispatch{std::move(slow), nullptr, {}, nullptr}; },
          nb::arg("slow"))
      .def(
          "set_call",
          [](Dispatch& d, std::shared_ptr<TorchCall> call) {
            d.function = nb::object();
            d.target = std::move(call);
          },
          nb::arg("call"))
      .def(
          "set_function",
          [](Dispatch& d, nb::object function, std::shared_ptr<StaticInputs> statics) {
            d.target.reset();
            d.statics = std::move(statics);
            d.function = std::move(function);
          },
          nb::arg("function"), nb::arg("statics").none())
      .def_prop_ro(
          "function",
          [](nb::handle self) {
            static PyObject* const kModule = PyUnicode_InternFromString("cuvil._core");
            return nb::steal(PyCFunction_NewEx(&dispatch_method, self.ptr(), kModule));
          },
          "A plain function that keeps this object alive.");
  m.def("torch_is_fast", [] {
    const TorchApi& torch = TorchApi::get();
    return torch.describe != nullptr && torch.empty_strided != nullptr;
  });
}

}  // namespace cuvil::python
