// Running models: compiled in this process or loaded from a .cvl. One class for both; policy is in executable.py.
#include "bindings/python/src/model.h"

#include <cstring>

namespace cuvil::python {
namespace {

DLDataType dl_dtype(const nb::ndarray<nb::ro>& a) {
  const nb::dlpack::dtype t = a.dtype();
  return {t.code, t.bits, t.lanes};
}

/// What the outputs should be: the framework of the inputs.
Framework framework_of(nb::handle h) {
  const char* type = Py_TYPE(h.ptr())->tp_name;
  if (std::strncmp(type, "numpy.", 6) == 0) return Framework::numpy;
  nb::object module = nb::getattr(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(h.ptr()))), "__module__");
  const std::string_view name = nb::cast<std::string_view>(module);
  return name == "torch" || name.substr(0, 6) == "torch." ? Framework::torch : Framework::numpy;
}

constexpr DLDataType kBFloat16{4, 16, 1};

/// NumPy has no bfloat16 of its own; ml_dtypes adds one, which DLPack and the buffer protocol do not carry. Its arrays
/// come in as their bits. Invalid if `h` is no such array.
nb::object bits_of(nb::handle h) {
  if (framework_of(h) != Framework::numpy || !nb::hasattr(h, "dtype") || !nb::hasattr(h, "view")) return {};
  const nb::object name = nb::getattr(h.attr("dtype"), "name", nb::none());
  if (!nb::isinstance<nb::str>(name) || nb::cast<std::string>(name) != "bfloat16") return {};
  return h.attr("view")("uint16");
}

}  // namespace

nb::object wrap_output(DLManagedTensor* t, Framework framework) {
  nb::capsule owner(t, [](void* p) noexcept {
    auto* managed = static_cast<DLManagedTensor*>(p);
    managed->deleter(managed);
  });
  const DLTensor& d = t->dl_tensor;
  std::vector<size_t> shape(d.shape, d.shape + d.ndim);
  const nb::dlpack::dtype dtype{d.dtype.code, d.dtype.bits, d.dtype.lanes};
  if (framework == Framework::torch)
    return nb::cast(nb::ndarray<nb::pytorch>(d.data, shape.size(), shape.data(), owner, nullptr, dtype));
  if (d.dtype.code == kBFloat16.code) {
    const nb::dlpack::dtype bits = nb::dtype<uint16_t>();
    const nb::object array = nb::cast(nb::ndarray<nb::numpy>(d.data, shape.size(), shape.data(), owner, nullptr, bits));
    try {
      return array.attr("view")(nb::module_::import_("ml_dtypes").attr("bfloat16"));
    } catch (const nb::python_error&) {
      throw Error(CUVIL_UNSUPPORTED_ERROR,
                  "a bfloat16 result needs the package ml_dtypes as a NumPy array; install it, or pass torch tensors");
    }
  }
  return nb::cast(nb::ndarray<nb::numpy>(d.data, shape.size(), shape.data(), owner, nullptr, dtype));
}

Model::Model(std::shared_ptr<driver::Executable> executable, int threads)
    : executable_(std::move(executable)), model_(executable_->model()), threads_(threads) {}

Model::Model(const std::string& path, int threads, bool inspect_only, bool verify) : threads_(threads) {
  const cuvil_open_options options{nullptr, verify ? 1 : 0, inspect_only ? 1 : 0};
  check(cuvil_open_file(path.c_str(), &options, &owned_));
  model_ = owned_;
}

Model::~Model() {
  for (const Lease::Idle& i : idle_) cuvil_context_destroy(i.context);
  cuvil_close(owned_);
}

Model::Lease::Lease(Model& m, int threads) : model_(m) {
  const int wanted = threads > 0 ? threads : m.threads_;
  {
    std::lock_guard lock(m.mutex_);
    for (size_t i = m.idle_.size(); i-- > 0;)
      if (m.idle_[i].threads == wanted) {
        idle_ = m.idle_[i];
        m.idle_.erase(m.idle_.begin() + static_cast<std::ptrdiff_t>(i));
        return;
      }
  }
  idle_.threads = wanted;
  check(cuvil_context_create(m.model_, wanted, &idle_.context));
}

Model::Lease::~Lease() {
  std::lock_guard lock(model_.mutex_);
  model_.idle_.push_back(idle_);
}

nb::object Model::call(const nb::args& args, const nb::kwargs& kwargs) {
  const size_t n = cuvil_input_count(model_);
  std::vector<nb::handle> given(n);
  bind_arguments(args, kwargs, given);

  std::vector<AnyArray> arrays(n);
  std::vector<DLTensor> tensors(n);
  std::vector<const DLTensor*> inputs(n);
  for (size_t i = 0; i < n; ++i) {
    DLDataType dtype;
    arrays[i] = to_array(given[i], i, &dtype);
    const AnyArray& a = arrays[i];
    tensors[i] = {const_cast<void*>(a.data()),
                  {kDLCPU, 0},
                  static_cast<int32_t>(a.ndim()),
                  dtype,
                  const_cast<int64_t*>(a.shape_ptr()),
                  const_cast<int64_t*>(a.stride_ptr()),
                  0};
    inputs[i] = &tensors[i];
  }
  std::vector<DLManagedTensor*> outputs(cuvil_output_count(model_), nullptr);
  {
    nb::gil_scoped_release nogil;
    Lease context(*this);
    check(cuvil_run_alloc(context.get(), inputs.data(), n, outputs.data(), outputs.size()));
  }
  const Framework framework = n > 0 ? framework_of(given[0]) : Framework::numpy;
  if (outputs.size() == 1) return wrap_output(outputs[0], framework);
  nb::list all;
  for (DLManagedTensor* o : outputs) all.append(wrap_output(o, framework));
  return nb::tuple(all);
}

nb::list Model::ports(bool outputs) const {
  nb::list l;
  const size_t n = outputs ? cuvil_output_count(model_) : cuvil_input_count(model_);
  for (size_t i = 0; i < n; ++i) {
    const cuvil_tensor_info* info = outputs ? cuvil_output_info(model_, i) : cuvil_input_info(model_, i);
    nb::list dims;
    for (int32_t d = 0; d < info->ndim; ++d) {
      if (info->dims[d] >= 0)
        dims.append(info->dims[d]);
      else
        dims.append(info->dim_texts[d]);
    }
    l.append(nb::make_tuple(std::string(info->name), std::string(cuvil_dtype_name(info->dtype)), nb::tuple(dims)));
  }
  return l;
}

nb::dict Model::memory() {
  Lease context(*this);
  cuvil_memory_info i{};
  check(cuvil_memory(context.get(), &i));
  nb::dict d;
  d["arena_bytes"] = i.arena_bytes;
  d["arena_lower_bound"] = i.arena_lower_bound;
  d["arena_reserved_bytes"] = i.arena_reserved_bytes;
  d["scratch_bytes_per_thread"] = i.scratch_bytes_per_thread;
  d["staging_bytes"] = i.staging_bytes;
  d["weight_bytes"] = i.weight_bytes;
  d["cached_plans"] = i.cached_plans;
  return d;
}

nb::list Model::profile(const nb::args& args, const nb::kwargs& kwargs) {
  {
    Lease context(*this);
    check(cuvil_profile_enable(context.get(), 1));
  }
  call(args, kwargs);  // takes the same context: it is on top
  Lease context(*this);
  nb::list rows;
  for (size_t i = 0; i < cuvil_step_count(context.get()); ++i) {
    cuvil_step_profile p{};
    check(cuvil_step(context.get(), i, &p));
    rows.append(nb::make_tuple(std::string(p.label), std::string(p.kernel), std::string(p.location), p.last_ns));
  }
  check(cuvil_profile_enable(context.get(), 0));
  return rows;
}

nb::list Model::steps() {
  Lease context(*this);
  nb::list labels;
  for (size_t i = 0; i < cuvil_step_count(context.get()); ++i) {
    cuvil_step_profile p{};
    check(cuvil_step(context.get(), i, &p));
    labels.append(std::string(p.label));
  }
  return labels;
}

nb::list Model::variants() const {
  nb::list l;
  for (size_t i = 0; i < cuvil_variant_count(model_); ++i) {
    cuvil_variant_info v{};
    check(cuvil_variant(model_, i, &v));
    nb::dict d;
    d["name"] = std::string(v.name);
    d["features"] = v.features;
    d["supported"] = v.supported != 0;
    d["selected"] = v.selected != 0;
    d["code_bytes"] = v.code_bytes;
    d["weight_bytes"] = v.weight_bytes;
    d["file_bytes"] = v.file_bytes;
    l.append(d);
  }
  return l;
}

nb::dict Model::metadata() const {
  nb::dict d;
  d["producer"] = std::string(cuvil_producer(model_));
  const char *key = nullptr, *value = nullptr;
  for (size_t i = 0; cuvil_metadata(model_, i, &key, &value); ++i) d[key] = std::string(value);
  return d;
}

int Model::threads() {
  Lease context(*this);
  return cuvil_context_threads(context.get());
}

void Model::bind_arguments(const nb::args& args, const nb::kwargs& kwargs, std::vector<nb::handle>& given) const {
  if (args.size() > given.size())
    throw Error(CUVIL_SHAPE_ERROR, "the model takes " + std::to_string(given.size()) + " input(s), got " +
                                       std::to_string(args.size()) + ": " + names());
  for (size_t i = 0; i < args.size(); ++i) given[i] = args[i];
  for (auto [key, value] : kwargs) {
    std::string name;
    if (!nb::try_cast(key, name)) name = "(no UTF-8)";
    size_t i = 0;
    while (i < given.size() && name != cuvil_input_info(model_, i)->name) ++i;
    if (i == given.size())
      throw Error(CUVIL_SHAPE_ERROR, "the model has no input '" + name + "'; its inputs are " + names());
    if (given[i].is_valid()) throw Error(CUVIL_SHAPE_ERROR, "input '" + name + "' is given twice");
    given[i] = value;
  }
  for (size_t i = 0; i < given.size(); ++i)
    if (!given[i].is_valid())
      throw Error(CUVIL_SHAPE_ERROR, "input '" + std::string(cuvil_input_info(model_, i)->name) +
                                         "' is missing; the inputs are " + names());
}

std::string Model::names() const {
  std::string s;
  for (size_t i = 0; i < cuvil_input_count(model_); ++i)
    s += (i ? ", '" : "'") + std::string(cuvil_input_info(model_, i)->name) + "'";
  return s.empty() ? "(none)" : s;
}

Model::AnyArray Model::to_array(nb::handle h, size_t i, DLDataType* dtype) const {
  AnyArray a;
  nb::object bits;
  if (nb::try_cast(h, a))
    *dtype = dl_dtype(a);
  else if ((bits = bits_of(h)).is_valid() && nb::try_cast(bits, a))
    *dtype = kBFloat16;
  else
    throw Error(CUVIL_SHAPE_ERROR, "input '" + std::string(cuvil_input_info(model_, i)->name) +
                                       "' must be an array on the CPU (NumPy, PyTorch or DLPack), got " +
                                       nb::cast<std::string>(nb::str(h.type())));
  if (a.device_type() != nb::device::cpu::value)
    throw Error(CUVIL_SHAPE_ERROR, "input '" + std::string(cuvil_input_info(model_, i)->name) +
                                       "' is not on the CPU; move it there first");
  return a;
}

void bind_model(nb::module_& m) {
  nb::class_<driver::Executable>(m, "Compiled")
      .def_prop_ro("build_seconds", &driver::Executable::build_seconds)
      .def_prop_ro("memory_plan", &driver::Executable::memory_plan)
      .def("report", &driver::Executable::report)
      .def_prop_ro("times",
                   [](const driver::Executable& e) {
                     std::vector<std::pair<std::string, double>> times;
                     for (const driver::StepTime& t : e.lowered().times) times.emplace_back(t.name, t.seconds);
                     return times;
                   })
      .def_prop_ro("graph_text", [](const driver::Executable& e) { return ir::print(e.lowered().graph, false); })
      .def_prop_ro("kernel_count", [](const driver::Executable& e) { return e.statistics().kernels; })
      .def_prop_ro("unique_kernel_count", [](const driver::Executable& e) { return e.statistics().unique; })
      .def_prop_ro("cached_kernel_count", [](const driver::Executable& e) { return e.statistics().from_cache; })
      .def_prop_ro("arena_bytes", [](const driver::Executable& e) { return e.lowered().plan.arena_bytes; })
      .def_prop_ro("arena_lower_bound", [](const driver::Executable& e) { return e.lowered().plan.lower_bound_bytes; })
      .def("save", &driver::Executable::save, nb::arg("path"), nb::arg("targets"),
           nb::call_guard<nb::gil_scoped_release>());

  nb::class_<Model>(m, "Model")
      .def(nb::init<std::shared_ptr<driver::Executable>, int>(), nb::arg("compiled"), nb::arg("num_threads"))
      .def(nb::init<const std::string&, int, bool, bool>(), nb::arg("path"), nb::arg("num_threads"),
           nb::arg("inspect_only") = false, nb::arg("verify") = false)
      .def("__call__", &Model::call)
      .def("profile", &Model::profile)
      .def_prop_ro("inputs", [](const Model& x) { return x.ports(false); })
      .def_prop_ro("outputs", [](const Model& x) { return x.ports(true); })
      .def_prop_ro("memory", &Model::memory)
      .def_prop_ro("steps", &Model::steps)
      .def_prop_ro("variants", &Model::variants)
      .def_prop_ro("metadata", &Model::metadata)
      .def_prop_ro("num_threads", &Model::threads)
      .def("verify", &Model::verify, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace cuvil::python
