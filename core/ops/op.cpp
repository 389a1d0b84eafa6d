#include "core/ops/op.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/ops/define.h"

namespace cuvil::ops {

namespace {

std::vector<OpDef> make_registry() {
  std::vector<OpDef> defs;
#define CUVIL_OP(name) defs.push_back(define_##name());
#include "core/ops/op_list.inc"
#undef CUVIL_OP
  std::sort(defs.begin(), defs.end(), [](const OpDef& a, const OpDef& b) { return a.name < b.name; });
  return defs;
}

const std::vector<OpDef>& registry() {
  static const std::vector<OpDef> defs = make_registry();
  return defs;
}

std::string_view kind_name(AttrKind kind) {
  switch (kind) {
    case AttrKind::integer:
      return "integer";
    case AttrKind::real:
      return "real";
    case AttrKind::string:
      return "string";
    case AttrKind::integers:
      return "integers";
    case AttrKind::reals:
      return "reals";
    case AttrKind::strings:
      return "strings";
    case AttrKind::dtype:
      return "dtype";
    case AttrKind::shape:
      return "shape";
    case AttrKind::tensor:
      return "tensor";
    case AttrKind::layout:
      return "layout";
  }
  return "?";
}

template <class T>
bool holds(const ir::Attribute& a) {
  return std::holds_alternative<T>(a);
}

/// True if the attribute has, or was converted to, the kind.
bool fit(ir::Attribute& a, AttrKind kind) {
  // An empty list says nothing of its elements, and integers stand for reals and sizes.
  const auto* ints = std::get_if<std::vector<int64_t>>(&a);
  const bool empty = (ints && ints->empty()) || (holds<Shape>(a) && std::get<Shape>(a).empty()) ||
                     (holds<std::vector<double>>(a) && std::get<std::vector<double>>(a).empty()) ||
                     (holds<std::vector<std::string>>(a) && std::get<std::vector<std::string>>(a).empty());
  switch (kind) {
    case AttrKind::integer:
      return holds<int64_t>(a);
    case AttrKind::real:
      if (holds<int64_t>(a)) a = static_cast<double>(std::get<int64_t>(a));
      return holds<double>(a);
    case AttrKind::string:
      return holds<std::string>(a);
    case AttrKind::integers:
      if (empty) a = std::vector<int64_t>();
      if (const Shape* s = std::get_if<Shape>(&a); s && is_static(*s)) {
        std::vector<int64_t> values;
        for (const Dim& d : *s) values.push_back(d.value());
        a = values;
      }
      return holds<std::vector<int64_t>>(a);
    case AttrKind::reals:
      if (empty) a = std::vector<double>();
      if (ints = std::get_if<std::vector<int64_t>>(&a); ints) a = std::vector<double>(ints->begin(), ints->end());
      return holds<std::vector<double>>(a);
    case AttrKind::strings:
      if (empty) a = std::vector<std::string>();
      return holds<std::vector<std::string>>(a);
    case AttrKind::dtype:
      return holds<DType>(a);
    case AttrKind::shape:
      if (empty) a = Shape();
      if (ints = std::get_if<std::vector<int64_t>>(&a); ints) a = Shape(ints->begin(), ints->end());
      return holds<Shape>(a);
    case AttrKind::tensor:
      return holds<ir::Tensor>(a);
    case AttrKind::layout:
      return holds<ir::Layout>(a);
  }
  return false;
}

std::string quoted(std::string_view s) { return "'" + std::string(s) + "'"; }

void check_inputs(const ir::Node& node, const OpDef& d) {
  size_t least = 0;
  for (size_t i = 0; i < d.inputs.size(); ++i)
    if (!d.inputs[i].optional) least = i + 1;
  const bool variadic = !d.inputs.empty() && d.inputs.back().variadic;
  const size_t count = node.inputs().size();
  if (count < least || (!variadic && count > d.inputs.size())) {
    throw_model_error(node.op + " takes " + (variadic || least != d.inputs.size() ? "at least " : "") +
                          std::to_string(least) +
                          (!variadic && least != d.inputs.size() ? " and at most " + std::to_string(d.inputs.size())
                                                                 : std::string()) +
                          " inputs, this one has " + std::to_string(count),
                      node.location);
  }
  for (size_t i = 0; i < count; ++i) {
    const ValueSpec& spec = d.inputs[std::min(i, d.inputs.size() - 1)];
    if (!node.input(i) && !spec.optional)
      throw_model_error(node.op + " needs its input " + quoted(spec.name), node.location);
  }
  static const std::vector<DType> kFirst = {DType::f32, DType::i64, DType::i32, DType::u8, DType::boolean};
  if (count == 0 || !node.input(0)) return;
  const std::vector<DType>& allowed = d.dtypes.empty() ? kFirst : d.dtypes;
  const DType dtype = node.input(0)->type.dtype;
  if (std::find(allowed.begin(), allowed.end(), dtype) != allowed.end()) return;
  std::string names;
  for (DType t : allowed) names += (names.empty() ? "" : ", ") + std::string(name_of(t));
  throw_unsupported(node.op + " of " + std::string(name_of(dtype)) + " is not supported; it takes " + names +
                        ". Cast the model's values, or keep this part in its framework",
                    node.location);
}

}  // namespace

void InferContext::require_equal(const Dim& a, const Dim& b, const std::string& what) const {
  if (a == b) return;
  const Dim difference = a - b;
  if (difference.is_const()) fail(what + ": " + a.str() + " and " + b.str() + " differ");
  if (requirements) requirements->emplace_back(a, b);
}

void InferContext::fail(const std::string& what) const {
  std::string message = node.op + ": " + what;
  std::string types;
  for (const ir::Value* v : node.inputs())
    types += (types.empty() ? "" : ", ") + (v ? v->name + ": " + v->type.str() : std::string("absent"));
  if (!types.empty()) message += "\n  inputs: " + types;
  throw_shape_error(message, node.location);
}

const OpDef* find(std::string_view name) {
  const std::vector<OpDef>& defs = registry();
  auto it =
      std::lower_bound(defs.begin(), defs.end(), name, [](const OpDef& d, std::string_view n) { return d.name < n; });
  return it != defs.end() && it->name == name ? &*it : nullptr;
}

const OpDef& get(std::string_view name) {
  const OpDef* d = find(name);
  CUVIL_CHECK(d, "no operator " + std::string(name));
  return *d;
}

Dim flops_of(const ir::Node& node) {
  const OpDef& d = def(node);
  if (d.flops) return d.flops(node);
  return node.outputs.empty() ? Dim(0) : num_elements(node.output()->type.shape);
}

std::span<const OpDef* const> all() {
  static const std::vector<const OpDef*> pointers = [] {
    std::vector<const OpDef*> v;
    for (const OpDef& d : registry()) v.push_back(&d);
    return v;
  }();
  return pointers;
}

void normalise(ir::Node& node) {
  const OpDef* d = find(node.op);
  if (!d) throw_unsupported("there is no operator " + quoted(node.op) + " in Cuvil", node.location);
  check_inputs(node, *d);
  for (auto& [name, value] : node.attributes) {
    if (name == "schedule" && holds<std::string>(value)) continue;
    const auto spec = std::find_if(d->attributes.begin(), d->attributes.end(),
                                   [&, &name = name](const AttrSpec& s) { return s.name == name; });
    if (spec == d->attributes.end()) throw_model_error(node.op + " has no attribute " + quoted(name), node.location);
    if (!fit(value, spec->kind))
      throw_model_error(
          "attribute " + quoted(name) + " of " + node.op + " must be of kind " + std::string(kind_name(spec->kind)),
          node.location);
  }
  for (const AttrSpec& spec : d->attributes) {
    if (node.has(spec.name)) continue;
    if (spec.required) throw_model_error(node.op + " needs attribute " + quoted(spec.name), node.location);
    if (!spec.fallback) continue;
    ir::Attribute value = *spec.fallback;
    CUVIL_CHECK(fit(value, spec.kind), "fallback of attribute " + std::string(spec.name) + " of " + node.op);
    node.attributes.emplace(std::string(spec.name), std::move(value));
  }
}

std::vector<std::pair<Dim, Dim>> requirements(const ir::Node& node) {
  std::vector<std::pair<Dim, Dim>> found;
  def(node).infer(InferContext{node, &found});
  return found;
}

std::vector<ir::Type> infer(const ir::Node& node) {
  const OpDef& d = def(node);
  std::vector<ir::Type> types = d.infer(InferContext{node});
  for (ir::Type& t : types) {
    if (!t.layout.is_plain()) continue;
    if (d.is(kElementwise)) {
      for (const ir::Value* v : node.inputs())
        if (v && v->type.shape == t.shape && t.layout.is_plain()) t.layout = v->type.layout;
    } else if (d.is(kBlockable) && t.rank() == 4 && !node.inputs().empty() && node.input(0)) {
      const ir::Type& in = node.input(0)->type;
      const int c = in.layout.block_of(1);
      if (in.rank() == 4 && c > 1) t.layout = ir::Layout::nchwc(4, c);
    }
  }
  return types;
}

namespace {
void check_region(ir::Graph& graph) {
  graph.for_each_node([](ir::Node& node) {
    ir::Attributes before = node.attributes;
    normalise(node);
    CUVIL_CHECK(before.size() == node.attributes.size(), node.op + " node lacks attributes that have defaults");
    const OpDef& d = def(node);
    const std::vector<ir::Type> types = infer(node);
    if (types.size() != node.outputs.size())
      throw_model_error(node.op + " has " + std::to_string(types.size()) + " outputs, this one says " +
                            std::to_string(node.outputs.size()),
                        node.location);
    for (size_t i = 0; i < types.size(); ++i) {
      const ir::Type& has = node.output(i)->type;
      if (has.dtype != types[i].dtype || has.shape != types[i].shape)
        throw_shape_error(
            "'" + node.output(i)->name + "' is " + has.str() + ", but its " + node.op + " gives " + types[i].str(),
            node.location);
      if (!has.layout.is_plain() && !d.is(kElementwise | kBlockable | kConstant | kReorder | kGroup))
        throw_internal("'" + node.output(i)->name + "' has a layout, but " + node.op + " does not work in layouts",
                       node.location);
    }
  });
}
}  // namespace

void check(const ir::Graph& graph) {
  ir::verify(graph);
  ir::Graph copy = graph.clone();  // normalise() and the visitor want a graph that may be changed
  check_region(copy);
}

}  // namespace cuvil::ops
