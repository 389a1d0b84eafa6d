#include "core/frontends/onnx/import.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "core/base/mapped_file.h"
#include "core/frontends/onnx/context.h"
#include "core/frontends/onnx/map_control.h"
#include "core/ops/op.h"

namespace cuvil::frontends {
namespace {

using namespace onnx;  // NOLINT: this file is the top of that namespace

constexpr int64_t kOldestOpset = 7, kNewestOpset = 28;
constexpr int kMaxFunctionDepth = 64;

/// Longer values are data, not shapes: a program per value would be of no use.
constexpr int64_t kMostInts = 1024, kMostFloats = 16;

/// What inputs call their sizes, as Dims. "batch_size" is the symbol of that name; "2*N + 1" is the expression if every
/// symbol in it is also the plain name of some size, so that its value can be read off the inputs; anything else
/// ("batch-size", "-1") is only a name and becomes a symbol of its letters, one for each name. Nothing and "?" say that
/// the exporter did not know: each such size is a symbol of its own.
class DimNames {
 public:
  explicit DimNames(const std::vector<ProtoValueInfo>& inputs) {
    for (const ProtoValueInfo& v : inputs)
      for (const ProtoDim& d : v.dims)
        if (is_plain(d.param)) plain_.emplace(d.param);
  }

  Dim dim_of(const ProtoDim& d, size_t input, size_t axis) {
    if (d.value && *d.value >= 0) return Dim(*d.value);
    if (is_plain(d.param)) return Dim::symbol(d.param);
    const std::string here = "d" + std::to_string(input) + "_" + std::to_string(axis);
    if (says_nothing(d.param)) return Dim::symbol(unused(here));
    if (std::optional<Dim> parsed = Dim::parse(d.param); parsed && is_readable(*parsed)) return *parsed;
    auto [it, added] = symbols_.emplace(d.param, "");
    if (added) {
      std::string name(d.param);
      for (char& c : name)
        if (!is_letter(c) && !is_digit(c)) c = '_';
      it->second = unused(is_digit(name[0]) ? here + "_" + name : name);
    }
    return Dim::symbol(it->second);
  }

 private:
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool says_nothing(std::string_view name) {
    return std::all_of(name.begin(), name.end(), [](char c) { return c == '?' || c == '*' || c == ' '; });
  }
  static bool is_plain(std::string_view name) {
    return !name.empty() && is_letter(name[0]) &&
           std::all_of(name.begin(), name.end(), [](char c) { return is_letter(c) || is_digit(c); });
  }
  bool is_readable(const Dim& d) const {
    const std::vector<std::string> symbols = d.symbols();
    return !symbols.empty() &&
           std::all_of(symbols.begin(), symbols.end(), [&](const std::string& s) { return plain_.count(s) > 0; });
  }
  /// The name, or the first numbered variant of it that no size has.
  std::string unused(const std::string& name) {
    std::string candidate = name;
    for (int i = 2; !plain_.insert(candidate).second; ++i) candidate = name + "_" + std::to_string(i);
    return candidate;
  }

  std::set<std::string, std::less<>> plain_;
  std::map<std::string, std::string, std::less<>> symbols_;
};

/// PyTorch's exporter leaves the Python stack on each node: the innermost line is the user's.
void apply_stack_trace(std::string_view trace, Location& where) {
  const size_t at = trace.rfind("File \"");
  if (at == std::string_view::npos) return;
  const std::string_view rest = trace.substr(at + 6);
  const size_t quote = rest.find("\", line ");
  if (quote == std::string_view::npos) return;
  where.file = std::string(rest.substr(0, quote));
  where.line = std::atoi(std::string(rest.substr(quote + 8, 10)).c_str());
  const size_t in = rest.find(", in ");
  if (in != std::string_view::npos) {
    const std::string_view tail = rest.substr(in + 5);
    where.function = std::string(tail.substr(0, tail.find('\n')));
  }
}

class Importer : public SubgraphImporter {
 public:
  Importer(const ProtoModel& model, ModelSource source, const ImportOptions& options)
      : model_(model), source_(std::move(source)), shapes_(options.shapes), values_(options.values) {}

  Imported run() {
    check_opset();
    check_names();
    ir::Graph graph(std::string(model_.graph.name.empty() ? "main" : model_.graph.name));
    graph.source = source_.name;
    ops::Builder builder(graph);
    builder_ = &builder;
    Scope scope;
    add_initializers(model_.graph, scope);
    add_inputs(graph, scope);
    import_nodes(model_.graph.nodes, scope, opset_, 0);
    if (!missing_.empty()) report_missing();
    if (!waits_.empty()) {
      std::vector<ValueInput> waits = waiting(graph);
      return {std::move(graph), std::move(waits)};
    }
    for (const ProtoValueInfo& o : model_.graph.outputs) graph.add_output(std::string(o.name), output_value(o, scope));
    ops::check(graph);
    return {std::move(graph), {}};
  }

 private:
  void check_opset() {
    auto it = model_.opsets.find("");
    if (it == model_.opsets.end()) {
      if (!model_.opsets.empty())
        opset_ = kNewestOpset;  // only operators of other domains
      else
        throw_model_error("the model does not say which opset it uses");
      return;
    }
    opset_ = it->second;
    if (opset_ < kOldestOpset || opset_ > kNewestOpset)
      throw_unsupported("the model uses ONNX opset " + std::to_string(opset_) + "; supported are " +
                        std::to_string(kOldestOpset) + " to " + std::to_string(kNewestOpset) +
                        ". Convert it with onnx.version_converter");
  }

  Location location_of(const ProtoNode& n) const {
    Location where;
    where.file = source_.name;
    where.variable = std::string(!n.name.empty() ? n.name : !n.outputs.empty() ? n.outputs[0] : n.op_type);
    auto it = n.metadata.find("pkg.torch.onnx.stack_trace");
    if (it != n.metadata.end()) apply_stack_trace(it->second, where);
    return where;
  }

  // ---- for the graphs of control flow
  void import_graph(const ProtoGraph& graph, Scope& scope, ops::Builder& builder, int64_t opset, int depth) override {
    if (depth >= kMaxFunctionDepth) throw_model_error("graphs are nested more than 64 deep");
    ops::Builder* outer = std::exchange(builder_, &builder);
    add_initializers(graph, scope);
    import_nodes(graph.nodes, scope, opset, depth);
    builder_ = outer;
  }
  ir::Value* value_of(std::string_view name, Scope& scope, ops::Builder& builder) override {
    ops::Builder* outer = std::exchange(builder_, &builder);
    ProtoValueInfo info;
    info.name = name;
    ir::Value* value = output_value(info, scope);
    builder_ = outer;
    return value;
  }
  bool is_incomplete() const override { return incomplete(); }

  void add_initializers(const ProtoGraph& graph, Scope& scope) {
    if (graph.has_sparse_initializers) throw_unsupported("the model has sparse initializers");
    for (const ProtoTensor& t : graph.initializers) {
      Location where;
      where.file = source_.name;
      where.variable = std::string(t.name);
      builder_->at(where);
      scope[std::string(t.name)] = {builder_->constant(to_tensor(t, source_, where), t.name), std::nullopt};
    }
  }

  void add_inputs(ir::Graph& graph, Scope& scope) {
    DimNames names(model_.graph.inputs);
    for (size_t i = 0; i < model_.graph.inputs.size(); ++i) {
      const ProtoValueInfo& v = model_.graph.inputs[i];
      if (scope.count(v.name)) continue;  // before IR version 4 initializers are inputs too
      Location where;
      where.file = source_.name;
      where.variable = std::string(v.name);
      if (!v.is_tensor) throw_unsupported("input '" + std::string(v.name) + "' is not a tensor", where);
      if (!v.has_shape) throw_unsupported("input '" + std::string(v.name) + "' has no known rank", where);
      const std::optional<DType> dtype = dtype_of(v.elem_type);
      if (!dtype) throw_unsupported("input '" + std::string(v.name) + "' is of " + onnx_type_name(v.elem_type), where);
      ir::Type type{*dtype, {}, {}};
      for (size_t a = 0; a < v.dims.size(); ++a) type.shape.push_back(names.dim_of(v.dims[a], i, a));
      apply_shape(std::string(v.name), type.shape, where);
      const auto value = values_.find(v.name);
      if (value != values_.end()) apply_value(value->second, type, std::string(v.name), where);
      ir::Value* input = graph.add_input(std::string(v.name), std::move(type));
      folder_.add_graph_input(input);
      if (value != values_.end()) {
        builder_->at(where);
        graph.fixed_inputs[input->name] = value->second;
        input = builder_->constant(value->second, v.name);
      }
      scope[std::string(v.name)] = {input, std::nullopt};
    }
  }

  /// The type of an input whose value is given.
  static void apply_value(const ir::Tensor& value, ir::Type& type, const std::string& name, const Location& where) {
    bool fits = value.type.dtype == type.dtype && value.type.rank() == type.rank();
    for (size_t a = 0; fits && a < type.shape.size(); ++a)
      fits = !type.shape[a].is_const() || type.shape[a] == value.type.shape[a];
    if (!fits)
      throw_shape_error("input '" + name + "' is " + type.str() + ", the value given for it is " + value.type.str(),
                        where);
    type.shape = value.type.shape;
  }

  /// The inputs whose values are needed, in the model's order; throws for those that are too large.
  std::vector<ValueInput> waiting(const ir::Graph& graph) const {
    std::vector<ValueInput> all;
    for (const auto& p : graph.body.params) {
      auto it = waits_.find(p.get());
      if (it == waits_.end()) continue;
      const int64_t most = is_float(p->type.dtype) ? kMostFloats : kMostInts;
      const std::optional<int64_t> n = num_elements(p->type.shape).as_const();
      if (n && *n > most)
        throw_unsupported(it->second + "\n  depends on the values of input '" + p->name + "' (" + p->type.str() +
                          "), which are too many for a compilation per value (the most are " + std::to_string(most) +
                          "). Where they never change, import with values={\"" + p->name + "\": ...}");
      all.push_back({p->name, most});
    }
    return all;
  }

  /// The caller's sizes of an input in place of the model's.
  void apply_shape(const std::string& name, Shape& shape, const Location& where) const {
    auto it = shapes_.find(name);
    if (it == shapes_.end()) return;
    if (it->second.size() != shape.size())
      throw_shape_error("input '" + name + "' has " + std::to_string(shape.size()) + " axes, " +
                            std::to_string(it->second.size()) + " sizes were given",
                        where);
    for (size_t a = 0; a < shape.size(); ++a) {
      const int64_t size = it->second[a];
      if (size == -1) continue;
      if (size < 0 || (shape[a].is_const() && shape[a].value() != size))
        throw_shape_error("axis " + std::to_string(a) + " of input '" + name + "' is " + shape[a].str() +
                              " in the model and cannot become " + std::to_string(size),
                          where);
      shape[a] = Dim(size);
    }
  }

  void check_names() const {
    const auto check = [&](const std::string& name, const char* what) {
      for (const ProtoValueInfo& v : model_.graph.inputs)
        if (v.name == name) return;
      throw_shape_error(std::string(what) + " given for '" + name + "', which is no input of the model");
    };
    for (const auto& [name, shape] : shapes_) check(name, "sizes were");
    for (const auto& [name, value] : values_) check(name, "a value was");
  }

  const ProtoFunction* function_of(const ProtoNode& n) const {
    for (const ProtoFunction& f : model_.functions)
      if (f.name == n.op_type && (f.domain == n.domain || (f.domain == "ai.onnx" && n.domain.empty()))) return &f;
    return nullptr;
  }

  void import_nodes(const std::vector<ProtoNode>& nodes, Scope& scope, int64_t opset, int depth) {
    for (const ProtoNode& n : nodes) {
      const Location where = location_of(n);
      if (const ProtoFunction* f = function_of(n)) {
        inline_function(*f, n, scope, where, depth);
        continue;
      }
      const bool of_default = n.domain.empty() || n.domain == "ai.onnx";
      const std::string full_name = (of_default ? "" : std::string(n.domain) + ".") + std::string(n.op_type);
      const MapFunction map = find_mapping(full_name);
      const bool control = of_default && is_control(n.op_type);
      if (!map && !control) {
        miss(full_name, where, "");
        continue;
      }
      if (needs_missing(n, scope)) continue;  // its producer is reported already
      builder_->at(where);
      OpContext context(n, opset, scope, *builder_, folder_, source_, where);
      try {
        if (control)
          map_control(context, scope, *this, depth + 1);
        else
          map(context);
      } catch (const NeedsValues& needs) {
        for (const ir::Value* v : needs.inputs) waits_.emplace(v, full_name + "  at " + where.str());
      } catch (const Error& e) {
        if (e.status() != CUVIL_UNSUPPORTED_ERROR) throw;
        miss(full_name, {}, e.what());
      }
    }
  }

  /// Something is missing or waits already: values may be absent for that reason. Else absence is the model's fault.
  bool incomplete() const { return !missing_.empty() || !waits_.empty(); }

  bool needs_missing(const ProtoNode& n, const Scope& scope) const {
    if (!incomplete()) return false;
    for (std::string_view in : n.inputs)
      if (!in.empty() && scope.find(in) == scope.end()) return true;
    return false;
  }

  void inline_function(const ProtoFunction& f, const ProtoNode& call, Scope& scope, const Location& where, int depth) {
    if (depth >= kMaxFunctionDepth) throw_model_error("functions call each other more than 64 deep", where);
    Scope inner;
    for (size_t i = 0; i < f.inputs.size() && i < call.inputs.size(); ++i) {
      auto it = scope.find(call.inputs[i]);
      if (it != scope.end()) inner[std::string(f.inputs[i])] = it->second;
    }
    std::vector<ProtoNode> nodes = f.nodes;
    for (ProtoNode& n : nodes) bind_attributes(n, f, call);
    auto it = f.opsets.find("");
    import_nodes(nodes, inner, it == f.opsets.end() ? opset_ : it->second, depth + 1);
    for (size_t i = 0; i < f.outputs.size() && i < call.outputs.size(); ++i) {
      auto result = inner.find(f.outputs[i]);
      if (result != inner.end())
        scope[std::string(call.outputs[i])] = result->second;
      else if (!incomplete() && !call.outputs[i].empty())
        throw_model_error("function " + std::string(f.name) + " never sets its output " + std::string(f.outputs[i]),
                          where);
    }
  }

  /// Attributes that refer to the function's own get the call's value, the function's default, or vanish.
  static void bind_attributes(ProtoNode& n, const ProtoFunction& f, const ProtoNode& call) {
    std::vector<ProtoAttribute> bound;
    for (ProtoAttribute& a : n.attributes) {
      if (a.ref_name.empty()) {
        bound.push_back(std::move(a));
        continue;
      }
      auto take = [&](const std::vector<ProtoAttribute>& from) {
        for (const ProtoAttribute& c : from) {
          if (c.name != a.ref_name) continue;
          bound.push_back(c);
          bound.back().name = a.name;
          return true;
        }
        return false;
      };
      if (!take(call.attributes)) take(f.attribute_defaults);
    }
    n.attributes = std::move(bound);
  }

  ir::Value* output_value(const ProtoValueInfo& o, Scope& scope) {
    ProtoNode fake;
    fake.op_type = "graph output";
    fake.inputs = {o.name};
    Location where;
    where.file = source_.name;
    where.variable = std::string(o.name);
    builder_->at(where);
    ir::Value* v = OpContext(fake, opset_, scope, *builder_, folder_, source_, where).in(0);
    return v;
  }

  void miss(const std::string& op, const Location& where, const std::string& reason) {
    missing_.push_back(reason.empty() ? op + "  at " + where.str() : reason);
  }

  [[noreturn]] void report_missing() const {
    constexpr size_t kMost = 20;
    std::string text = std::to_string(missing_.size()) + " node(s) of '" + source_.name + "' are not supported:";
    for (size_t i = 0; i < missing_.size() && i < kMost; ++i) text += "\n  " + missing_[i];
    if (missing_.size() > kMost) text += "\n  and " + std::to_string(missing_.size() - kMost) + " more";
    throw_unsupported(text);
  }

  const ProtoModel& model_;
  ModelSource source_;
  const InputShapes& shapes_;
  const InputValues& values_;
  int64_t opset_ = kNewestOpset;
  ops::Builder* builder_ = nullptr;
  Folder folder_;
  std::vector<std::string> missing_;
  std::map<const ir::Value*, std::string> waits_;  ///< inputs whose values are needed, and by which node first
};

}  // namespace

Imported try_import_onnx(std::string_view bytes, std::shared_ptr<const void> owner, const std::string& source,
                         const std::string& folder, const ImportOptions& options) {
  const ProtoModel model = decode(bytes);
  return Importer(model, {std::move(owner), source, folder}, options).run();
}

Imported try_import_onnx_file(const std::string& path, const ImportOptions& options) {
  const MappedFile file = map_file(path, CUVIL_MODEL_ERROR);
  const std::filesystem::path p(path);
  const std::string folder = p.has_parent_path() ? p.parent_path().string() : ".";
  return try_import_onnx(file.bytes, file.owner, p.filename().string(), folder, options);
}

namespace {

ir::Graph complete(Imported imported) {
  if (imported.waits_for.empty()) return std::move(imported.graph);
  std::string names;
  for (const ValueInput& v : imported.waits_for) names += (names.empty() ? "'" : ", '") + v.name + "'";
  throw_unsupported("'" + imported.graph.source + "' needs the values of its input(s) " + names +
                    ", which decide shapes or axes. Give them when importing");
}

}  // namespace

ir::Graph import_onnx(std::string_view bytes, std::shared_ptr<const void> owner, const std::string& source,
                      const std::string& folder, const ImportOptions& options) {
  return complete(try_import_onnx(bytes, std::move(owner), source, folder, options));
}

ir::Graph import_onnx_file(const std::string& path, const ImportOptions& options) {
  return complete(try_import_onnx_file(path, options));
}

}  // namespace cuvil::frontends
