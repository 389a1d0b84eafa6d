// CIR: a typed SSA graph. A graph is a region; a region is a list of nodes in execution order; nodes produce values.
// What operators mean, and their type rules, is said in core/ops; this folder knows only structure.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/ir/tensor.h"
#include "core/ir/type.h"

namespace cuvil::ir {

struct Node;
struct Region;

/// Result of a node, or a parameter of a region (a graph's inputs are the parameters of its body).
struct Value {
  std::string name;  ///< unique in the graph; the user's name where one exists ("conv_out"), else made up ("v12")
  Type type;
  Node* producer = nullptr;  ///< null for a region's parameter
  std::vector<Node*> users;  ///< one entry per use as an input; region results are not in it
};

using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                               std::vector<std::string>, DType, Shape, Tensor, Layout>;

/// Attributes in order of name.
using Attributes = std::map<std::string, Attribute, std::less<>>;

struct Region {
  Region() = default;
  Region(Region&&) = default;
  Region& operator=(Region&&) = default;
  std::vector<std::unique_ptr<Value>> params;
  std::list<std::unique_ptr<Node>> nodes;  ///< defs before uses
  std::vector<Value*> results;
};

struct Node {
  int id = 0;      ///< unique in the graph, stable through passes
  std::string op;  ///< name of an operator of core/ops: "Conv2D"
  Attributes attributes;
  std::vector<std::unique_ptr<Value>> outputs;
  std::vector<Region> regions;  ///< If, Loop, Fused, ...
  Location location;

  const std::vector<Value*>& inputs() const { return inputs_; }
  /// Input i, or null if it is optional and absent.
  Value* input(size_t i) const { return i < inputs_.size() ? inputs_[i] : nullptr; }
  Value* output(size_t i = 0) const { return outputs[i].get(); }
  void set_input(size_t i, Value* value);  ///< keeps Value::users right
  void add_input(Value* value);
  void clear_inputs();
  ~Node();

  // Attribute access; the typed getters throw an internal error for a wrong type, since ops::check has run before.
  bool has(std::string_view name) const { return attributes.find(name) != attributes.end(); }
  template <class T>
  const T& attr(std::string_view name) const {
    auto it = attributes.find(name);
    CUVIL_CHECK(it != attributes.end(), "node " + op + " has no attribute '" + std::string(name) + "'");
    const T* v = std::get_if<T>(&it->second);
    CUVIL_CHECK(v, "attribute '" + std::string(name) + "' of " + op + " has another type");
    return *v;
  }
  template <class T>
  T attr_or(std::string_view name, T fallback) const {
    return has(name) ? attr<T>(name) : fallback;
  }

 private:
  std::vector<Value*> inputs_;
};

/// A whole model. Movable, not copyable (use clone()).
class Graph {
 public:
  explicit Graph(std::string name = "main") : name(std::move(name)) {}
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;

  std::string name;
  std::string source;  ///< model file or "", for messages
  Region body;
  /// The user's names of the results, beside body.results: a result may be any value, even an input. In text:
  /// `-> (prob = %v12)`.
  std::vector<std::string> output_names;
  /// Inputs, by name, that went into the graph as constants: it is right only for calls with these values, which the
  /// runtime checks. In text: `%axes: i64[1] = dense<i64[1], 2>`.
  std::map<std::string, Tensor, std::less<>> fixed_inputs;

  /// A new graph input.
  Value* add_input(std::string name, Type type);
  /// A new graph result.
  void add_output(std::string name, Value* value);
  /// Creates a node before `before` (default: at the end of `region`, default: the body) with `output_types` results.
  /// Types are NOT inferred here: ops::Builder (core/ops/builder.h) does that and is what importers and passes use.
  Node* create(std::string op, std::vector<Value*> inputs, Attributes attributes, std::vector<Type> output_types,
               Location location = {}, Region* region = nullptr, std::optional<Node*> before = {});
  /// Every use of `from`, region results included, becomes a use of `to`.
  void replace_uses(Value* from, Value* to);
  /// Removes a node whose outputs have no uses; internal error otherwise.
  void erase(Node* node);
  /// True if nothing, region results included, uses the value.
  bool unused(const Value* value) const;
  bool is_result(const Value* value) const;
  /// A name not yet taken, starting with `stem`.
  std::string fresh_name(std::string_view stem);
  Graph clone() const;
  /// A copy whose results are the values of these names, and of whose nodes only those are left that they need.
  /// ModelError for a name that no value of the body has.
  Graph prefix(const std::vector<std::string>& results) const;

  /// Names of all symbols in input types, sorted.
  std::vector<std::string> symbols() const;
  /// Hands a closed region (one that reads nothing from outside) to `f` as a graph of its own, and takes back what `f`
  /// returns. Names and ids stay unique in the whole.
  template <class F>
  void edit_region(Region& region, F&& f) {
    Graph inner(name);
    inner.source = source;
    inner.next_id_ = next_id_;
    inner.names_ = std::move(names_);
    inner.body = std::move(region);
    inner.output_names.resize(inner.body.results.size());
    inner = f(std::move(inner));
    next_id_ = inner.next_id_;
    names_ = std::move(inner.names_);
    region = std::move(inner.body);
  }
  /// Visits all nodes, those of inner regions after the node that holds them.
  template <class F>
  void for_each_node(F&& f) {
    visit(body, f);
  }

 private:
  int next_id_ = 0;
  std::map<std::string, int, std::less<>> names_;
  template <class F>
  static void visit(Region& r, F& f) {
    for (auto& n : r.nodes) {
      f(*n);
      for (Region& inner : n->regions) visit(inner, f);
    }
  }
};

/// The tensor of a Constant node, or null.
const Tensor* constant_of(const Value* value);

// ---- text form (print.cpp, parse.cpp); docs/cir.md
/// Round-trips through parse(), ids of nodes apart. Constants of more than 16 elements print as dense<TYPE, 0xHEX> with
/// `full`, and without it as dense<TYPE, #HASH>, which parse() refuses with a clear message.
std::string print(const Graph& graph, bool full = true);
/// Throws ModelError with line and column. Any bytes are safe to pass.
Graph parse(std::string_view text, std::string source = "");

/// Structural rules (verify.cpp): unique names and ids, defs before uses, users lists right, layouts valid for ranks,
/// symbols bound by inputs. Operator rules are ops::check (core/ops/op.h). Throws InternalError naming node and rule.
void verify(const Graph& graph);
/// The first broken rule in words, or nothing.
std::optional<std::string> find_violation(const Graph& graph);

}  // namespace cuvil::ir
