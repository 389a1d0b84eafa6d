// Graphs and nodes, importers, build.
#include "bindings/python/src/graph.h"

#include <map>

#include "bindings/python/src/bindings.h"
#include "core/frontends/onnx/import.h"
#include "core/ops/op.h"
#include "runtime/dtypes.h"

namespace cuvil::python {
namespace {

/// A node as Python sees it; `inputs` are the ids of the nodes that produce its inputs, -1 for a graph input.
struct PyNode {
  std::shared_ptr<ir::Graph> graph;
  const ir::Node* node;
};

nb::object to_python(const ir::Attribute& a) {
  return std::visit(
      [](const auto& v) -> nb::object {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, DType>) {
          return nb::cast(std::string(name_of(v)));
        } else if constexpr (std::is_same_v<T, Shape>) {
          nb::list l;
          for (const Dim& d : v) {
            if (d.is_const())
              l.append(d.value());
            else
              l.append(d.str());
          }
          return l;
        } else if constexpr (std::is_same_v<T, ir::Tensor>) {
          return nb::cast(v.type.str());
        } else if constexpr (std::is_same_v<T, ir::Layout>) {
          return nb::cast(v.is_plain() ? std::string("plain") : v.str(8));
        } else {
          return nb::cast(v);
        }
      },
      a);
}

nb::object dims_of(const Shape& shape) {
  nb::list l;
  for (const Dim& d : shape) {
    if (d.is_const())
      l.append(d.value());
    else
      l.append(d.str());
  }
  return nb::tuple(l);
}

std::vector<int> input_ids(const PyNode& n) {
  std::vector<int> ids;
  for (const ir::Value* v : n.node->inputs()) ids.push_back(v && v->producer ? v->producer->id : -1);
  return ids;
}

std::string repr(const PyNode& n) {
  std::string s = "Node(id=" + std::to_string(n.node->id) + ", op=\"" + n.node->op + "\", inputs=[";
  bool first = true;
  for (int id : input_ids(n)) {
    s += (first ? "" : ", ") + std::to_string(id);
    first = false;
  }
  return s + "])";
}

std::vector<PyNode> nodes_of(const PyGraph& g) {
  std::vector<PyNode> out;
  for (const auto& n : g.graph->body.nodes) out.push_back({g.graph, n.get()});
  return out;
}

nb::list ports(const std::vector<std::pair<std::string, const ir::Type*>>& values) {
  nb::list l;
  for (const auto& [name, type] : values)
    l.append(nb::make_tuple(name, std::string(name_of(type->dtype)), dims_of(type->shape)));
  return l;
}

DType dtype_of(const nb::dlpack::dtype& t, const std::string& name) {
  for (unsigned i = 0; i < kDTypeCount; ++i) {
    const DLDataType d = runtime::to_dlpack(i);
    if (d.code == t.code && d.bits == t.bits && d.lanes == t.lanes) return static_cast<DType>(i);
  }
  throw Error(CUVIL_SHAPE_ERROR, "the value of input '" + name + "' has an element type that no input has");
}

/// {name: contiguous array on the CPU} as tensors; the bytes are copied.
frontends::InputValues values_of(const nb::dict& values) {
  frontends::InputValues all;
  for (auto [key, value] : values) {
    const auto name = nb::cast<std::string>(key);
    nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu> a;
    if (!nb::try_cast(value, a))
      throw Error(CUVIL_SHAPE_ERROR, "the value of input '" + name + "' is no numeric array");
    const nb::dlpack::dtype t = a.dtype();
    ir::Type type{dtype_of({t.code, t.bits, t.lanes}, name), {}, {}};
    for (size_t i = 0; i < a.ndim(); ++i) type.shape.emplace_back(static_cast<int64_t>(a.shape(i)));
    const auto* bytes = static_cast<const uint8_t*>(a.data());
    all[name] = ir::Tensor::from_bytes(std::move(type), {bytes, bytes + a.nbytes()});
  }
  return all;
}

/// (graph, [(name, most elements)] of the inputs that it waits for).
template <class F>
nb::tuple import(F&& run) {
  std::optional<frontends::Imported> result;
  {
    nb::gil_scoped_release nogil;
    result.emplace(run());
  }
  nb::list waits;
  for (const frontends::ValueInput& v : result->waits_for) waits.append(nb::make_tuple(v.name, v.most_elements));
  return nb::make_tuple(PyGraph{std::make_shared<ir::Graph>(std::move(result->graph))}, waits);
}

}  // namespace

void bind_graph(nb::module_& m) {
  nb::class_<Location>(m, "Location")
      .def_ro("file", &Location::file)
      .def_ro("line", &Location::line)
      .def_ro("function", &Location::function)
      .def_ro("module_path", &Location::module_path)
      .def_ro("variable", &Location::variable)
      .def("__str__", &Location::str)
      .def("__repr__", [](const Location& l) { return "Location(" + l.str() + ")"; });

  nb::class_<PyNode>(m, "Node")
      .def_prop_ro("id", [](const PyNode& n) { return n.node->id; })
      .def_prop_ro("op", [](const PyNode& n) { return n.node->op; })
      .def_prop_ro("name", [](const PyNode& n) { return n.node->outputs.empty() ? "" : n.node->output()->name; })
      .def_prop_ro("inputs", &input_ids)
      .def_prop_ro("input_names",
                   [](const PyNode& n) {
                     std::vector<std::string> names;
                     for (const ir::Value* v : n.node->inputs()) names.push_back(v ? v->name : "");
                     return names;
                   })
      .def_prop_ro("outputs",
                   [](const PyNode& n) {
                     std::vector<std::pair<std::string, const ir::Type*>> v;
                     for (const auto& o : n.node->outputs) v.emplace_back(o->name, &o->type);
                     return ports(v);
                   })
      .def_prop_ro("attributes",
                   [](const PyNode& n) {
                     nb::dict d;
                     for (const auto& [name, value] : n.node->attributes) d[nb::cast(name)] = to_python(value);
                     return d;
                   })
      .def_prop_ro("location", [](const PyNode& n) { return n.node->location; })
      .def("__repr__", &repr);

  nb::class_<PyGraph>(m, "Graph")
      .def_prop_ro("name", [](const PyGraph& g) { return g.graph->name; })
      .def_prop_ro("nodes", &nodes_of)
      .def_prop_ro("inputs",
                   [](const PyGraph& g) {
                     std::vector<std::pair<std::string, const ir::Type*>> v;
                     for (const auto& p : g.graph->body.params) v.emplace_back(p->name, &p->type);
                     return ports(v);
                   })
      .def_prop_ro("outputs",
                   [](const PyGraph& g) {
                     std::vector<std::pair<std::string, const ir::Type*>> v;
                     for (size_t i = 0; i < g.graph->body.results.size(); ++i)
                       v.emplace_back(g.graph->output_names[i], &g.graph->body.results[i]->type);
                     return ports(v);
                   })
      .def(
          "text", [](const PyGraph& g, bool full) { return ir::print(*g.graph, full); }, nb::arg("full") = false)
      .def_prop_ro(
          "result_names",
          [](const PyGraph& g) {
            std::vector<std::string> names;
            for (const ir::Value* v : g.graph->body.results) names.push_back(v->name);
            return names;
          },
          "Names, inside the graph, of the values that are its outputs.")
      .def(
          "prefix",
          [](const PyGraph& g, const std::vector<std::string>& results) {
            return PyGraph{std::make_shared<ir::Graph>(g.graph->prefix(results))};
          },
          nb::arg("results"), "A copy whose results are the values of these names, with only the nodes they need.")
      .def("__str__", [](const PyGraph& g) { return ir::print(*g.graph, false); })
      .def("__repr__", [](const PyGraph& g) {
        return "Graph(\"" + g.graph->name + "\", " + std::to_string(g.graph->body.nodes.size()) + " nodes)";
      });

  m.def(
      "import_onnx_file",
      [](const std::string& path, const frontends::InputShapes& shapes, const nb::dict& values) {
        const frontends::ImportOptions options{shapes, values_of(values)};
        return import([&] { return frontends::try_import_onnx_file(path, options); });
      },
      nb::arg("path"), nb::arg("shapes"), nb::arg("values"));
  m.def(
      "import_onnx_bytes",
      [](nb::bytes data, const std::string& source, const frontends::InputShapes& shapes, const nb::dict& values) {
        const frontends::ImportOptions options{shapes, values_of(values)};
        // The graph's constants point into the bytes object, which they keep alive; the last of them may go on a thread
        // without the GIL.
        PyObject* object = data.ptr();
        Py_INCREF(object);
        std::shared_ptr<const void> owner(object, [](const void* p) {
          nb::gil_scoped_acquire gil;
          Py_DECREF(static_cast<PyObject*>(const_cast<void*>(p)));
        });
        const std::string_view bytes(data.c_str(), data.size());
        return import([&] { return frontends::try_import_onnx(bytes, std::move(owner), source, "", options); });
      },
      nb::arg("data"), nb::arg("source"), nb::arg("shapes"), nb::arg("values"));
  m.def("parse", [](const std::string& text) {
    nb::gil_scoped_release nogil;
    auto graph = std::make_shared<ir::Graph>(ir::parse(text));
    graph->for_each_node([](ir::Node& n) { ops::normalise(n); });  // defaults may be left out
    ops::check(*graph);
    return PyGraph{std::move(graph)};
  });

  m.def(
      "build",
      [](const PyGraph& g, const std::string& target, const std::string& precision, const std::string& numerics,
         const std::string& backend, bool optimize) {
        nb::gil_scoped_release nogil;
        return driver::build(*g.graph, {target, precision, numerics, backend, optimize});
      },
      nb::arg("graph"), nb::arg("target"), nb::arg("precision"), nb::arg("numerics"), nb::arg("backend"),
      nb::arg("optimize") = true);
  m.def(
      "save",
      [](const PyGraph& g, const std::string& precision, const std::string& numerics, const std::string& path,
         const std::vector<std::string>& targets) {
        nb::gil_scoped_release nogil;
        driver::save(*g.graph, {"cpu", precision, numerics, "cpu"}, path, targets);
      },
      nb::arg("graph"), nb::arg("precision"), nb::arg("numerics"), nb::arg("path"), nb::arg("targets"));
  m.def(
      "emit",
      [](const PyGraph& g, const std::string& target, const std::string& precision, const std::string& numerics,
         const std::string& format) {
        nb::gil_scoped_release nogil;
        return driver::emit(*g.graph, {target, precision, numerics, "cpu"}, format);
      },
      nb::arg("graph"), nb::arg("target"), nb::arg("precision"), nb::arg("numerics"), nb::arg("format"));
}

}  // namespace cuvil::python
