// Graphs built from Python: sizes, constants that map a framework's memory, nodes through ops::Builder.
#include "core/ops/builder.h"

#include <nanobind/stl/optional.h>

#include "bindings/python/src/bindings.h"
#include "bindings/python/src/graph.h"

namespace cuvil::python {
namespace {

/// A value of a graph under construction.
struct PyValue {
  std::shared_ptr<ir::Graph> graph;
  ir::Value* value;
};

Dim dim_from(nb::handle h) {
  if (nb::isinstance<Dim>(h)) return nb::cast<Dim>(h);
  return Dim(nb::cast<int64_t>(h));
}

/// A number as a number, the rest as a Dim.
nb::object dim_to_python(const Dim& d) { return d.is_const() ? nb::cast(d.value()) : nb::cast(d); }

Shape shape_from(nb::handle h) {
  Shape shape;
  for (nb::handle d : h) shape.push_back(dim_from(d));
  return shape;
}

nb::tuple shape_to_python(const Shape& shape) {
  nb::list l;
  for (const Dim& d : shape) l.append(dim_to_python(d));
  return nb::tuple(l);
}

DType dtype_from(std::string_view name) {
  const std::optional<DType> t = dtype_from_name(name);
  if (!t) throw_unsupported("element type " + std::string(name));
  return *t;
}

DType dtype_from(const nb::dlpack::dtype& t) {
  if (t.lanes == 1) {
    const auto code = static_cast<nb::dlpack::dtype_code>(t.code);
    const std::string bits = std::to_string(t.bits);
    if (code == nb::dlpack::dtype_code::Float) return dtype_from("f" + bits);
    if (code == nb::dlpack::dtype_code::Bfloat) return dtype_from("bf" + bits);
    if (code == nb::dlpack::dtype_code::Int) return dtype_from("i" + bits);
    if (code == nb::dlpack::dtype_code::UInt) return dtype_from("u" + bits);
    if (code == nb::dlpack::dtype_code::Bool && t.bits == 8) return DType::boolean;
  }
  throw_unsupported("a constant of an element type that is no real number");
}

using ConstantArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

/// Shares the array's memory; the array may go on a thread without the GIL.
ir::Tensor tensor_from(ConstantArray array) {
  ir::Type type{dtype_from(array.dtype()), {}, {}};
  for (size_t a = 0; a < array.ndim(); ++a) type.shape.emplace_back(static_cast<int64_t>(array.shape(a)));
  static const uint8_t kNothing = 0;
  const void* data = array.data() ? array.data() : &kNothing;
  auto* owner = new ConstantArray(std::move(array));
  std::shared_ptr<const void> bytes(data, [owner](const void*) {
    nb::gil_scoped_acquire gil;
    delete owner;
  });
  return {std::move(type), std::move(bytes)};
}

/// What Python gives, as the operator's schema wants it.
ir::Attribute attribute_from(ops::AttrKind kind, nb::handle h) {
  switch (kind) {
    case ops::AttrKind::integer:
      return nb::cast<int64_t>(h);
    case ops::AttrKind::real:
      return nb::cast<double>(h);
    case ops::AttrKind::string:
      return nb::cast<std::string>(h);
    case ops::AttrKind::integers:
      return nb::cast<std::vector<int64_t>>(h);
    case ops::AttrKind::reals:
      return nb::cast<std::vector<double>>(h);
    case ops::AttrKind::strings:
      return nb::cast<std::vector<std::string>>(h);
    case ops::AttrKind::dtype:
      return dtype_from(nb::cast<std::string>(h));
    case ops::AttrKind::shape:
      return shape_from(h);
    case ops::AttrKind::tensor:
      return tensor_from(nb::cast<ConstantArray>(h));
    case ops::AttrKind::layout:
      break;
  }
  throw_model_error("an attribute that only passes set");
}

class GraphBuilder {
 public:
  GraphBuilder(const std::string& name, const std::string& source)
      : graph_(std::make_shared<ir::Graph>(name)), builder_(*graph_) {
    graph_->source = source;
  }

  void at(const std::string& file, int line, const std::string& function, const std::string& module_path,
          const std::string& variable) {
    builder_.at({file, line, function, module_path, variable});
  }

  PyValue add_input(const std::string& name, const std::string& dtype, nb::handle shape) {
    open();
    return {graph_, graph_->add_input(name, {dtype_from(dtype), shape_from(shape), {}})};
  }

  PyValue constant(ConstantArray array, const std::string& name) {
    open();
    return {graph_, builder_.constant(tensor_from(std::move(array)), name)};
  }

  std::vector<PyValue> emit(const std::string& op, const nb::list& inputs, const nb::dict& attributes,
                            const std::string& name) {
    open();
    const ops::OpDef* def = ops::find(op);
    if (!def) throw_unsupported("operator " + op);
    std::vector<ir::Value*> values;
    for (nb::handle h : inputs) {
      if (h.is_none()) {
        values.push_back(nullptr);
        continue;
      }
      const PyValue& v = nb::cast<const PyValue&>(h);
      if (v.graph != graph_) throw_model_error("a value of another graph is used as an input of " + op);
      values.push_back(v.value);
    }
    ir::Attributes a;
    for (const auto& [key, value] : attributes) {
      const auto attribute = nb::cast<std::string>(key);
      const auto spec = std::find_if(def->attributes.begin(), def->attributes.end(),
                                     [&](const ops::AttrSpec& s) { return s.name == attribute; });
      if (spec == def->attributes.end()) throw_model_error(op + " has no attribute '" + attribute + "'");
      a[attribute] = attribute_from(spec->kind, value);
    }
    const ir::Node* node = builder_.add_node(op, std::move(values), std::move(a), name);
    std::vector<PyValue> outputs;
    for (const auto& o : node->outputs) outputs.push_back({graph_, o.get()});
    return outputs;
  }

  void rename(const PyValue& value, const std::string& name) {
    open();
    value.value->name = graph_->fresh_name(name);
  }

  void add_output(const std::string& name, const PyValue& value) {
    open();
    if (value.graph != graph_) throw_model_error("a value of another graph is given as a result");
    graph_->add_output(name, value.value);
  }

  /// The graph, without what nothing uses; the builder is done then.
  PyGraph finish() {
    open();
    for (auto it = graph_->body.nodes.end(); it != graph_->body.nodes.begin();) {
      ir::Node* node = std::prev(it)->get();
      bool unused = true;
      for (const auto& o : node->outputs) unused = unused && graph_->unused(o.get());
      if (unused)
        graph_->erase(node);
      else
        --it;
    }
    ops::check(*graph_);
    done_ = true;
    return {graph_};
  }

 private:
  void open() const {
    if (done_) throw_model_error("the graph is finished; start another builder");
  }

  std::shared_ptr<ir::Graph> graph_;
  ops::Builder builder_;
  bool done_ = false;
};

void bind_dim(nb::module_& m) {
  const auto number = [](const Dim& d) -> std::optional<int64_t> { return d.as_const(); };
  nb::class_<Dim>(m, "Dim", "A size: a number or an expression over symbols, in canonical form.")
      .def(nb::init<int64_t>())
      .def_static(
          "symbol", [](const std::string& name) { return Dim::symbol(name); }, nb::arg("name"))
      .def_prop_ro("value", number, "The number, or None if it is symbolic.")
      .def_prop_ro("symbols", &Dim::symbols)
      .def_prop_ro("lower_bound", &Dim::lower_bound)
      .def("substitute", &Dim::substitute, nb::arg("values"), "Symbols replaced by Dims.")
      .def("evaluate", &Dim::evaluate, nb::arg("values"), "The value for given symbols; None if one is missing.")
      .def("__str__", &Dim::str)
      .def("__repr__", [](const Dim& d) { return "Dim(" + d.str() + ")"; })
      .def("__hash__", [](const Dim& d) { return std::hash<std::string>{}(d.str()); })
      .def("__eq__",
           [](const Dim& a, nb::handle b) {
             if (nb::isinstance<Dim>(b)) return a == nb::cast<Dim>(b);
             int64_t n = 0;
             return nb::try_cast<int64_t>(b, n) && a == Dim(n);
           })
      .def("__add__", [](const Dim& a, nb::handle b) { return a + dim_from(b); })
      .def("__radd__", [](const Dim& a, nb::handle b) { return dim_from(b) + a; })
      .def("__sub__", [](const Dim& a, nb::handle b) { return a - dim_from(b); })
      .def("__rsub__", [](const Dim& a, nb::handle b) { return dim_from(b) - a; })
      .def("__mul__", [](const Dim& a, nb::handle b) { return a * dim_from(b); })
      .def("__rmul__", [](const Dim& a, nb::handle b) { return dim_from(b) * a; })
      .def("__neg__", [](const Dim& a) { return Dim(0) - a; })
      .def("__floordiv__", [](const Dim& a, nb::handle b) { return floordiv(a, dim_from(b)); })
      .def("__mod__", [](const Dim& a, nb::handle b) { return mod(a, dim_from(b)); });
  m.def("dim_min", [](nb::handle a, nb::handle b) { return min(dim_from(a), dim_from(b)); });
  m.def("dim_max", [](nb::handle a, nb::handle b) { return max(dim_from(a), dim_from(b)); });
}

}  // namespace

void bind_builder(nb::module_& m) {
  bind_dim(m);
  nb::class_<PyValue>(m, "Value", "A value of a graph that a GraphBuilder builds.")
      .def_prop_ro("name", [](const PyValue& v) { return v.value->name; })
      .def_prop_ro("dtype", [](const PyValue& v) { return std::string(name_of(v.value->type.dtype)); })
      .def_prop_ro("shape", [](const PyValue& v) { return shape_to_python(v.value->type.shape); })
      .def_prop_ro("producer",
                   [](const PyValue& v) { return v.value->producer ? v.value->producer->op : std::string(); })
      .def("__repr__", [](const PyValue& v) { return "%" + v.value->name + ": " + v.value->type.str(); });

  nb::class_<GraphBuilder>(m, "GraphBuilder", "Builds a graph node by node; types are inferred and checked at once.")
      .def(nb::init<const std::string&, const std::string&>(), nb::arg("name") = "main", nb::arg("source") = "")
      .def("at", &GraphBuilder::at, nb::arg("file") = "", nb::arg("line") = 0, nb::arg("function") = "",
           nb::arg("module_path") = "", nb::arg("variable") = "", "Location of the nodes from now on.")
      .def("add_input", &GraphBuilder::add_input, nb::arg("name"), nb::arg("dtype"), nb::arg("shape"),
           "A graph input. Sizes are numbers or Dims.")
      .def("constant", &GraphBuilder::constant, nb::arg("array"), nb::arg("name") = "",
           "A constant that shares the memory of a contiguous array in main memory, and keeps the array alive.")
      .def("emit", &GraphBuilder::emit, nb::arg("op"), nb::arg("inputs"), nb::arg("attributes"), nb::arg("name") = "",
           "Adds a node; None stands for an optional input left out. Raises ShapeError, UnsupportedError, ModelError.")
      .def("rename", &GraphBuilder::rename, nb::arg("value"), nb::arg("name"), "Made unique where it is taken.")
      .def("add_output", &GraphBuilder::add_output, nb::arg("name"), nb::arg("value"))
      .def("finish", &GraphBuilder::finish, "The graph, without nodes that nothing uses. Ends the building.");
}

}  // namespace cuvil::python
