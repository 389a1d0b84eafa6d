#include <algorithm>
#include <map>

#include "core/abi/hash.h"
#include "core/passes/pass.h"
#include "core/passes/rewrite.h"

namespace cuvil::passes {
namespace {

bool equal(const ir::Attribute& a, const ir::Attribute& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&](const auto& x) {
        using T = std::decay_t<decltype(x)>;
        const T& y = std::get<T>(b);
        if constexpr (std::is_same_v<T, ir::Tensor>)
          return ir::equal(x, y);
        else if constexpr (std::is_same_v<T, double>)
          return std::memcmp(&x, &y, sizeof x) == 0;  // -0.0 is not 0.0
        else if constexpr (std::is_same_v<T, std::vector<double>>)
          return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), 8 * x.size()) == 0);
        else
          return x == y;
      },
      a);
}

bool equal(const ir::Attributes& a, const ir::Attributes& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first && equal(x.second, y.second); });
}

using Pairs = std::map<const ir::Value*, const ir::Value*>;

/// Values of two regions that are being compared stand for each other; outer values for themselves.
const ir::Value* twin(const Pairs& twins, const ir::Value* v) {
  const auto it = twins.find(v);
  return it == twins.end() ? v : it->second;
}

bool equal_nodes(const ir::Node& a, const ir::Node& b, Pairs& twins);

bool equal_regions(const ir::Region& a, const ir::Region& b, Pairs& twins) {
  if (a.params.size() != b.params.size() || a.nodes.size() != b.nodes.size() || a.results.size() != b.results.size())
    return false;
  for (size_t i = 0; i < a.params.size(); ++i) {
    if (!(a.params[i]->type == b.params[i]->type)) return false;
    twins[a.params[i].get()] = b.params[i].get();
  }
  for (auto x = a.nodes.begin(), y = b.nodes.begin(); x != a.nodes.end(); ++x, ++y)
    if (!equal_nodes(**x, **y, twins)) return false;
  for (size_t i = 0; i < a.results.size(); ++i)
    if (twin(twins, a.results[i]) != b.results[i]) return false;
  return true;
}

bool equal_nodes(const ir::Node& a, const ir::Node& b, Pairs& twins) {
  if (a.op != b.op || a.inputs().size() != b.inputs().size() || a.outputs.size() != b.outputs.size() ||
      a.regions.size() != b.regions.size() || !equal(a.attributes, b.attributes))
    return false;
  const auto same_inputs = [&](bool swapped) {
    for (size_t i = 0; i < a.inputs().size(); ++i)
      if (twin(twins, a.input(i)) != b.input(swapped ? a.inputs().size() - 1 - i : i)) return false;
    return true;
  };
  const bool commutes = ops::def(a).is(ops::kCommutative) && a.inputs().size() == 2;
  if (!same_inputs(false) && !(commutes && same_inputs(true))) return false;
  for (size_t i = 0; i < a.regions.size(); ++i)
    if (!equal_regions(a.regions[i], b.regions[i], twins)) return false;
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    if (!(a.output(i)->type == b.output(i)->type)) return false;
    twins[a.output(i)] = b.output(i);
  }
  return true;
}

/// Equal nodes have equal keys; the other way round equal_nodes() decides. Of large tensors both ends speak.
class Keys {
 public:
  uint64_t of(const ir::Node& n) {
    std::vector<uint64_t> parts;
    for (const ir::Value* v : n.inputs()) parts.push_back(v ? number(v) : 0);
    if (ops::def(n).is(ops::kCommutative)) std::sort(parts.begin(), parts.end());
    for (const auto& [key, a] : n.attributes) {
      parts.push_back(xxh64(key.data(), key.size()));
      parts.push_back(a.index());
      if (const auto* t = std::get_if<ir::Tensor>(&a)) {
        constexpr int64_t kEnd = 4096;
        const int64_t bytes = t->bytes();
        const auto end = static_cast<size_t>(std::min(bytes, kEnd));
        parts.push_back(static_cast<uint64_t>(bytes));
        parts.push_back(xxh64(t->raw(), end));
        parts.push_back(xxh64(t->raw() + (bytes - static_cast<int64_t>(end)), end));
      }
    }
    return xxh64(parts.data(), parts.size() * sizeof parts[0], xxh64(n.op.data(), n.op.size()));
  }

 private:
  /// In order of appearance, so that the key does not depend on addresses.
  uint64_t number(const ir::Value* v) { return numbers_.emplace(v, numbers_.size() + 1).first->second; }
  std::map<const ir::Value*, uint64_t> numbers_;
};

}  // namespace

/// Nodes of equal operator, inputs, attributes, regions and types: the first is kept. Constants are nodes too.
ir::Graph eliminate_common_subexpressions(ir::Graph graph, const PassContext&) {
  std::map<uint64_t, std::vector<ir::Node*>> seen;
  Keys keys;
  bool changed = false;
  for (ir::Node* node : body_nodes(graph)) {
    if (!ops::def(*node).is(ops::kPure) || node->outputs.empty()) continue;
    std::vector<ir::Node*>& candidates = seen[keys.of(*node)];
    ir::Node* same = nullptr;
    for (ir::Node* c : candidates) {
      Pairs twins;
      if (!same && equal_nodes(*node, *c, twins)) same = c;
    }
    if (!same) {
      candidates.push_back(node);
      continue;
    }
    for (size_t i = 0; i < node->outputs.size(); ++i) replace_value(graph, node->output(i), same->output(i));
    changed = true;
  }
  if (changed) erase_dead(graph);
  return graph;
}

}  // namespace cuvil::passes
