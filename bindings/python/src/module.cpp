#include "bindings/python/src/bindings.h"
#include "core/base/target_info.h"
#include "core/ops/op.h"

namespace cuvil::python {

void check(cuvil_status status) {
  if (status != CUVIL_OK) throw Error(status, cuvil_last_error());
}

/// C++ errors become the classes of cuvil/errors.py: one class per status.
void bind_errors(nb::module_& m) {
  (void)m;
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error& e) {
      static const char* const kNames[] = {"CuvilError",    "ModelError",  "UnsupportedError", "ShapeError",
                                           "ArtifactError", "TargetError", "InternalError"};
      const int status = e.status();
      nb::object type = nb::module_::import_("cuvil.errors").attr(kNames[status >= 1 && status <= 6 ? status : 6]);
      // A message may quote names of a damaged model, which are not always UTF-8.
      const std::string_view what = e.what();
      PyObject* text = PyUnicode_DecodeUTF8(what.data(), static_cast<Py_ssize_t>(what.size()), "replace");
      PyErr_SetObject(type.ptr(), text);
      Py_XDECREF(text);
    }
  });
}

}  // namespace cuvil::python

NB_MODULE(_core, m) {
  using namespace cuvil;          // NOLINT
  using namespace cuvil::python;  // NOLINT
  nb::set_leak_warnings(false);   // frameworks keep compiled functions until the process ends
  m.doc() = "Cuvil's compiler and runtime";
  bind_errors(m);
  bind_graph(m);
  bind_builder(m);
  bind_model(m);
  bind_torch(m);
  m.def("version", [] { return cuvil_version(); });
  m.def("target_names", [] { return TargetInfo::names(); });
  m.def("host_target", [] {
    const TargetInfo host = TargetInfo::host();
    nb::dict d;
    d["cpu"] = host.cpu;
    d["key"] = host.key();
    d["cores"] = host.cores;
    d["vector_bits"] = host.vector_bytes * 8;
    d["l1_bytes"] = host.l1_bytes;
    d["l2_bytes"] = host.l2_bytes;
    d["l3_bytes"] = host.l3_bytes;
    return d;
  });
  m.def("operators", [] {
    std::vector<std::string> names;
    for (const ops::OpDef* op : ops::all()) names.emplace_back(op->name);
    return names;
  });
}
