#include "core/frontends/onnx/map_control.h"

#include <algorithm>
#include <set>

namespace cuvil::frontends::onnx {
namespace {

using Ints = std::vector<int64_t>;

/// All names that the nodes and outputs of a graph speak of, those of inner graphs too.
void add_names(const ProtoGraph& graph, std::set<std::string_view>& names) {
  for (const ProtoNode& n : graph.nodes) {
    names.insert(n.inputs.begin(), n.inputs.end());
    for (const ProtoAttribute& a : n.attributes)
      for (const ProtoGraph& inner : a.graphs) add_names(inner, names);
  }
  for (const ProtoValueInfo& o : graph.outputs) names.insert(o.name);
}

const ProtoGraph& graph_of(const OpContext& c, std::string_view name) {
  const ProtoAttribute* a = c.attribute(name);
  if (!a || a->graphs.size() != 1)
    c.malformed(std::string(c.proto.op_type) + " lacks its graph '" + std::string(name) + "'");
  return a->graphs[0];
}

ir::Value* add_param(ir::Region& region, ir::Graph& graph, std::string_view name, ir::Type type) {
  auto v = std::make_unique<ir::Value>();
  v->name = graph.fresh_name(name);
  v->type = std::move(type);
  region.params.push_back(std::move(v));
  return region.params.back().get();
}

/// Outer values that regions of one node read: each becomes a parameter of every region, in the same order. What is
/// known or constant is not captured but made anew inside.
class Captures {
 public:
  Captures(Scope& outer, const std::vector<const ProtoGraph*>& graphs) {
    std::set<std::string_view> names;
    for (const ProtoGraph* g : graphs) add_names(*g, names);
    for (std::string_view name : names) {
      const auto it = outer.find(name);
      if (it == outer.end()) continue;
      const Entry& e = it->second;
      entries_.emplace_back(std::string(name), e);
      if (e.value && !ir::constant_of(e.value)) values_.push_back(e.value);
    }
  }

  const std::vector<ir::Value*>& values() const { return values_; }

  /// Adds parameters to a region and entries to its scope.
  void bind(ir::Region& region, ops::Builder& builder, Scope& scope) const {
    for (const auto& [name, e] : entries_) {
      Entry inner{nullptr, e.known};
      if (e.value) {
        const ir::Tensor* t = ir::constant_of(e.value);
        inner.value =
            t ? builder.constant(*t, e.value->name) : add_param(region, builder.graph(), e.value->name, e.value->type);
      }
      scope[name] = std::move(inner);
    }
  }

 private:
  std::vector<std::pair<std::string, Entry>> entries_;
  std::vector<ir::Value*> values_;
};

std::vector<ir::Value*> results_of(const ProtoGraph& graph, Scope& scope, ops::Builder& builder,
                                   SubgraphImporter& importer) {
  std::vector<ir::Value*> values;
  for (const ProtoValueInfo& o : graph.outputs) values.push_back(importer.value_of(o.name, scope, builder));
  return values;
}

void if_op(OpContext& c, Scope& scope, SubgraphImporter& importer, int depth) {
  const ProtoGraph& yes = graph_of(c, "then_branch");
  const ProtoGraph& no = graph_of(c, "else_branch");
  if (yes.outputs.size() != no.outputs.size() || yes.outputs.size() < c.num_outputs())
    c.malformed("the branches of If have different numbers of results");
  if (const std::optional<KnownInts> known = c.known(0);
      known && known->values.size() == 1 && known->values[0].is_const()) {
    const ProtoGraph& taken = known->values[0].value() != 0 ? yes : no;
    Scope inner = scope;
    importer.import_graph(taken, inner, c.b, c.opset, depth);
    for (size_t i = 0; i < c.num_outputs(); ++i)
      if (auto it = inner.find(taken.outputs[i].name); it != inner.end())
        scope[std::string(c.proto.outputs[i])] = it->second;
    return;
  }
  const Captures captures(scope, {&yes, &no});
  std::vector<ir::Region> regions(2);
  for (size_t i = 0; i < 2; ++i) {
    const ProtoGraph& graph = i == 0 ? yes : no;
    ops::Builder builder(c.b.graph(), regions[i]);
    Scope inner;
    captures.bind(regions[i], builder, inner);
    importer.import_graph(graph, inner, builder, c.opset, depth);
    if (importer.is_incomplete()) return;
    regions[i].results = results_of(graph, inner, builder, importer);
  }
  for (size_t i = 0; i < regions[0].results.size(); ++i) {
    const ir::Type &a = regions[0].results[i]->type, &b = regions[1].results[i]->type;
    if (a.dtype != b.dtype) c.malformed("the branches of If give different element types");
    if (a.shape != b.shape)
      c.unsupported("If whose branches give different shapes, " + to_string(a.shape) + " and " + to_string(b.shape) +
                    ", and whose condition is not known when the model is imported");
  }
  std::vector<ir::Value*> inputs{c.in(0)};
  inputs.insert(inputs.end(), captures.values().begin(), captures.values().end());
  const ir::Node* node = c.b.add_node("If", std::move(inputs), {}, c.out_name(), std::move(regions));
  for (size_t i = 0; i < c.num_outputs(); ++i) c.out(i, node->output(i));
}

/// True if the value is a constant true, perhaps handed on.
bool is_true(const ir::Value* v) {
  while (v->producer && v->producer->op == "Identity") v = v->producer->input(0);
  const ir::Tensor* t = ir::constant_of(v);
  return t && t->as_int(0) != 0;
}

/// A number that is known as an expression, as a value.
ir::Value* number(OpContext& c, const Dim& d) {
  if (d.is_const()) {
    ir::Tensor t = ir::Tensor::from_ints({d.value()});
    t.type.shape.clear();
    return c.b.constant(std::move(t));
  }
  return c.b.add("Sizes", {}, {{"values", Shape{d}}, {"shape", Shape{}}});
}

struct LoopParts {
  ir::Region region;
  std::vector<ir::Value*> inputs;  ///< trips, condition, carried, captured
  int64_t carried = 0;
  std::optional<Dim> length;  ///< number of iterations, if it is known as an expression
  std::optional<Dim> most;    ///< or at least this is
};

/// The node; with stacked results of unknown length it sets a symbol.
const ir::Node* add_loop(OpContext& c, LoopParts parts) {
  ir::Attributes attributes{{"carried", parts.carried}};
  if (parts.region.results.size() > static_cast<size_t>(parts.carried) + 1) {
    if (parts.length) {
      attributes["length"] = Shape{*parts.length};
    } else {
      attributes.merge(c.set_symbol("iterations", *parts.most));
      attributes["length"] = Shape{Dim::symbol(std::get<std::vector<std::string>>(attributes["sets"])[0])};
    }
  }
  std::vector<ir::Region> regions;
  regions.push_back(std::move(parts.region));
  return c.b.add_node("Loop", std::move(parts.inputs), std::move(attributes), c.out_name(), std::move(regions));
}

/// What a body makes of a carried value must have the type it began with.
void check_carried(OpContext& c, const LoopParts& parts, size_t first_param) {
  for (size_t i = 0; i < static_cast<size_t>(parts.carried); ++i) {
    const ir::Type &from = parts.region.params[first_param + i]->type, &to = parts.region.results[1 + i]->type;
    if (from != to)
      c.unsupported(std::string(c.proto.op_type) + " whose value " + std::to_string(i) + " begins as " + from.str() +
                    " and is " + to.str() + " after an iteration");
  }
}

void loop_op(OpContext& c, Scope& scope, SubgraphImporter& importer, int depth) {
  const ProtoGraph& body = graph_of(c, "body");
  const size_t carried = c.num_inputs() < 2 ? 0 : c.num_inputs() - 2;
  if (body.inputs.size() != carried + 2 || body.outputs.size() < carried + 1)
    c.malformed("the body of Loop has " + std::to_string(body.inputs.size()) + " inputs and " +
                std::to_string(body.outputs.size()) + " outputs for " + std::to_string(carried) + " carried values");
  LoopParts parts;
  parts.carried = static_cast<int64_t>(carried);
  ops::Builder builder(c.b.graph(), parts.region);
  Scope inner;
  const ir::Type index{DType::i64, {}, {}};
  inner[std::string(body.inputs[0].name)] = {add_param(parts.region, c.b.graph(), body.inputs[0].name, index), {}};
  // While the body runs the condition is true.
  inner[std::string(body.inputs[1].name)] = {builder.constant(ir::Tensor::scalar(DType::boolean, 1)), {}};
  parts.inputs = {c.in_or_null(0), c.in_or_null(1)};
  for (size_t i = 0; i < carried; ++i) {
    ir::Value* first = c.in(2 + i);
    parts.inputs.push_back(first);
    const std::string_view name = body.inputs[2 + i].name;
    inner[std::string(name)] = {add_param(parts.region, c.b.graph(), name, first->type), {}};
  }
  const Captures captures(scope, {&body});
  captures.bind(parts.region, builder, inner);
  importer.import_graph(body, inner, builder, c.opset, depth);
  if (importer.is_incomplete()) return;
  parts.region.results = results_of(body, inner, builder, importer);
  parts.inputs.insert(parts.inputs.end(), captures.values().begin(), captures.values().end());
  check_carried(c, parts, 1);
  if (body.outputs.size() > carried + 1) {
    if (!c.has(0)) c.unsupported("Loop with stacked results and without a trip count, the bound of their size");
    const std::vector<Dim> trips = c.dims(0, "the trip count, which bounds the stacked results,");
    if (trips.size() != 1) c.malformed("the trip count of Loop must be one number");
    parts.most = max(trips[0], Dim(0));
    const bool always = is_true(parts.region.results[0]) && (!parts.inputs[1] || is_true(parts.inputs[1]));
    if (always) parts.length = parts.most;
  }
  const ir::Node* node = add_loop(c, std::move(parts));
  for (size_t i = 0; i < c.num_outputs(); ++i) c.out(i, node->output(i));
}

/// Scan is a loop that takes slices of its inputs.
void scan_op(OpContext& c, Scope& scope, SubgraphImporter& importer, int depth) {
  if (c.opset < 9) c.unsupported("Scan before opset 9, which has a batch axis. Convert with onnx.version_converter");
  const ProtoGraph& body = graph_of(c, "body");
  const size_t scanned = static_cast<size_t>(c.attr_int("num_scan_inputs", 0)), inputs = c.num_inputs();
  if (scanned == 0 || scanned > inputs || body.inputs.size() != inputs || body.outputs.size() < inputs - scanned)
    c.malformed("Scan: num_scan_inputs and its body do not fit its inputs");
  const size_t states = inputs - scanned, stacked = body.outputs.size() - states;
  const auto list = [&](std::string_view name, size_t n) {
    Ints values = c.attr_ints(name, Ints(n, 0));
    if (values.size() != n) c.malformed("Scan: " + std::string(name) + " has the wrong length");
    return values;
  };
  const Ints axes = list("scan_input_axes", scanned), ways = list("scan_input_directions", scanned);
  const Ints out_axes = list("scan_output_axes", stacked), out_ways = list("scan_output_directions", stacked);

  LoopParts parts;
  parts.carried = static_cast<int64_t>(states);
  ir::Graph& graph = c.b.graph();
  ops::Builder builder(graph, parts.region);
  Scope inner;
  ir::Value* step = add_param(parts.region, graph, "step", {DType::i64, {}, {}});
  parts.inputs = {nullptr, nullptr};
  for (size_t i = 0; i < states; ++i) {
    parts.inputs.push_back(c.in(i));
    const std::string_view name = body.inputs[i].name;
    inner[std::string(name)] = {add_param(parts.region, graph, name, c.type(i)), {}};
  }
  for (size_t i = 0; i < scanned; ++i) {
    ir::Value* whole = c.in(states + i);
    const int64_t axis = c.axis(axes[i], whole->type.rank());
    const Dim& extent = whole->type.shape[static_cast<size_t>(axis)];
    if (!parts.length) parts.length = extent;
    if (*parts.length != extent && (*parts.length - extent).is_const())
      c.malformed("Scan: its inputs have different numbers of slices, " + parts.length->str() + " and " + extent.str());
    if (*parts.length != extent)
      c.unsupported("Scan over inputs of " + parts.length->str() + " and " + extent.str() + " slices");
    parts.inputs.push_back(whole);
    const ir::Value* param = add_param(parts.region, graph, whole->name, whole->type);
    builder.at(c.where);
    ir::Value* at = step;
    if (ways[i] != 0) {
      ir::Value* last = builder.add("Sizes", {}, {{"values", Shape{extent - Dim(1)}}, {"shape", Shape{}}});
      at = builder.add("Sub", {last, step});
    }
    ir::Value* slice = builder.add("Gather", {const_cast<ir::Value*>(param), at}, {{"axis", axis}});
    inner[std::string(body.inputs[states + i].name)] = {slice, {}};
  }
  const Captures captures(scope, {&body});
  captures.bind(parts.region, builder, inner);
  importer.import_graph(body, inner, builder, c.opset, depth);
  if (importer.is_incomplete()) return;
  parts.region.results = results_of(body, inner, builder, importer);
  parts.region.results.insert(parts.region.results.begin(), builder.constant(ir::Tensor::scalar(DType::boolean, 1)));
  parts.inputs.insert(parts.inputs.end(), captures.values().begin(), captures.values().end());
  check_carried(c, parts, 1);
  const Dim length = *parts.length;
  parts.inputs[0] = number(c, length);
  const ir::Node* node = add_loop(c, std::move(parts));
  for (size_t i = 0; i < c.num_outputs(); ++i) {
    ir::Value* v = node->output(i);
    if (i >= states && c.wants(i)) {
      const int rank = v->type.rank();
      const size_t k = i - states;
      if (out_ways[k] != 0) {
        Shape begin(v->type.shape.size(), 0);
        begin[0] = length - Dim(1);
        Ints steps(v->type.shape.size(), 1);
        steps[0] = -1;
        v = c.b.add("Slice", {v}, {{"begin", begin}, {"size", v->type.shape}, {"step", steps}});
      }
      if (const int64_t axis = c.axis(out_axes[k], rank); axis != 0) {
        Ints perm;
        for (int64_t a = 1; a < rank; ++a) perm.push_back(a);
        perm.insert(perm.begin() + axis, 0);
        v = c.b.add("Transpose", {v}, {{"perm", perm}});
      }
    }
    c.out(i, v);
  }
}

}  // namespace

bool is_control(std::string_view op) { return op == "If" || op == "Loop" || op == "Scan"; }

void map_control(OpContext& c, Scope& scope, SubgraphImporter& importer, int depth) {
  if (c.proto.op_type == "If") return if_op(c, scope, importer, depth);
  if (c.proto.op_type == "Loop") return loop_op(c, scope, importer, depth);
  scan_op(c, scope, importer, depth);
}

}  // namespace cuvil::frontends::onnx
