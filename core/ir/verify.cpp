// The rules of a well-formed graph:
//  1. Every value has a name, and no two have the same; ids of nodes differ; every node has an operator.
//  2. A value's producer is the node whose output it is; parameters of regions have none.
//  3. What a node reads is a parameter of an open region or the output of a node before it; so are regions' results.
//  4. A value's list of users holds its reading nodes, once per use, and nothing else.
//  5. A layout's order is empty or a permutation other than the identity; blocks split axes of the tensor by at
//  least 2.
//  6. Sizes are not known to be negative, and every symbol in a type occurs in the type of one of the graph's inputs,
//     or is named by attribute "sets" of a node before: its value depends on data.
//  7. Results of the graph and their names correspond; regions are nested at most kMaxNesting deep.
//  8. Constants have known sizes, and bytes.
//  9. A fixed input is an input, and its value has its type.
#include <algorithm>
#include <map>
#include <set>

#include "core/ir/graph.h"
#include "core/ir/text.h"

namespace cuvil::ir {
namespace {

using Broken = std::optional<std::string>;

Broken check_layout(const Layout& l, int rank) {
  if (!l.order.empty()) {
    std::vector<int> sorted = l.order;
    std::sort(sorted.begin(), sorted.end());
    bool permutation = static_cast<int>(sorted.size()) == rank;
    for (size_t i = 0; i < sorted.size(); ++i) permutation = permutation && sorted[i] == static_cast<int>(i);
    if (!permutation) return "the order of a layout is not a permutation of the axes";
    if (std::is_sorted(l.order.begin(), l.order.end())) return "the order of a layout is the identity, written out";
  }
  for (const Layout::Block& b : l.blocks)
    if (b.axis < 0 || b.axis >= rank || b.size < 2) return "a layout has a block of no axis, or smaller than 2";
  return {};
}

class Verifier {
 public:
  Broken run(const Graph& g) {
    const std::vector<std::string> symbols = g.symbols();
    symbols_.insert(symbols.begin(), symbols.end());
    if (g.output_names.size() != g.body.results.size()) return "results of the graph and their names differ in number";
    for (const auto& [fixed, value] : g.fixed_inputs) {
      const auto is_it = [&name = fixed](const auto& p) { return p && p->name == name; };
      const auto it = std::find_if(g.body.params.begin(), g.body.params.end(), is_it);
      if (it == g.body.params.end()) return "'" + fixed + "' has a fixed value and is no input";
      if ((*it)->type != value.type) return "the fixed value of input '" + fixed + "' is of another type";
    }
    if (Broken b = region(g.body, 0)) return b;
    for (const Value* v : all_)
      if (Broken b = users(*v)) return b;
    return {};
  }

 private:
  Broken region(const Region& r, int depth) {
    if (depth > text::kMaxNesting) return "regions are nested too deep";
    std::vector<const Value*> mine;
    for (const auto& p : r.params) {
      if (!p) return "a region's parameter is null";
      if (p->producer) return "parameter '" + p->name + "' has a producer";
      if (Broken b = define(*p)) return b;
      mine.push_back(p.get());
    }
    for (const auto& n : r.nodes) {
      if (Broken b = node(*n, depth)) return b;
      for (const auto& v : n->outputs) mine.push_back(v.get());
    }
    for (const Value* v : r.results)
      if (!visible_.count(v)) return "a region's result is not a value that is visible in it";
    for (const Value* v : mine) visible_.erase(v);
    return {};
  }

  Broken node(const Node& n, int depth) {
    if (n.op.empty()) return "a node has no operator";
    if (!ids_.insert(n.id).second) return "two nodes have id " + std::to_string(n.id);
    for (const Value* v : n.inputs()) {
      if (!v) continue;
      if (!visible_.count(v)) return "an input of " + n.op + " is not defined before it";
      ++uses_[v][&n];
    }
    for (const auto& [key, a] : n.attributes)
      if (const auto* t = std::get_if<Tensor>(&a))
        if (Broken b = constant(*t)) return "attribute '" + key + "' of " + n.op + ": " + *b;
    for (const Region& r : n.regions)
      if (Broken b = region(r, depth + 1)) return b;
    if (n.has("sets"))
      for (const std::string& s : n.attr<std::vector<std::string>>("sets"))
        if (!symbols_.insert(s).second) return "symbol " + s + " is set twice, or by an input too";
    for (const auto& v : n.outputs) {
      if (!v) return "an output of " + n.op + " is null";
      if (v->producer != &n) return "the producer of '" + v->name + "' is not the node whose output it is";
      if (Broken b = define(*v)) return b;
    }
    return {};
  }

  Broken define(const Value& v) {
    if (v.name.empty()) return "a value has no name";
    if (!names_.insert(v.name).second) return "two values have the name '" + v.name + "'";
    if (Broken b = check_layout(v.type.layout, v.type.rank())) return "'" + v.name + "': " + *b;
    for (const Dim& d : v.type.shape) {
      if (const auto most = d.upper_bound(); most && *most < 0)
        return "'" + v.name + "' has a negative size: " + v.type.str();
      for (const std::string& s : d.symbols())
        if (!symbols_.count(s))
          return "'" + v.name + "' has a size of " + s +
                 ", which occurs in no input of the graph and is set by no node before";
    }
    visible_.insert(&v);
    all_.push_back(&v);
    return {};
  }

  static Broken constant(const Tensor& t) {
    if (!is_static(t.type.shape)) return "a constant of unknown sizes";
    if (Broken b = check_layout(t.type.layout, t.type.rank())) return b;
    if (!t.data) return "a constant without bytes";
    return {};
  }

  Broken users(const Value& v) {
    std::map<const Node*, int> listed;
    for (const Node* n : v.users) ++listed[n];
    auto it = uses_.find(&v);
    if (listed != (it == uses_.end() ? std::map<const Node*, int>() : it->second))
      return "the list of users of '" + v.name + "' is not the list of the nodes that read it";
    return {};
  }

  std::set<std::string> symbols_, names_;
  std::set<int> ids_;
  std::set<const Value*> visible_;
  std::vector<const Value*> all_;
  std::map<const Value*, std::map<const Node*, int>> uses_;
};

}  // namespace

std::optional<std::string> find_violation(const Graph& graph) { return Verifier().run(graph); }

void verify(const Graph& graph) {
  if (const std::optional<std::string> broken = find_violation(graph))
    throw_internal("graph '" + graph.name + "' breaks a rule of CIR: " + *broken);
}

}  // namespace cuvil::ir
