#include "core/ir/graph.h"

#include <algorithm>
#include <set>

namespace cuvil::ir {
namespace {

void forget(Value* value, Node* user) {
  auto it = std::find(value->users.begin(), value->users.end(), user);
  CUVIL_CHECK(it != value->users.end(), "a user is missing from the list of value " + value->name);
  value->users.erase(it);
}

/// Calls f on the results of the region and of all regions inside it.
template <class F>
void for_each_results(Region& region, F&& f) {
  f(region.results);
  for (auto& n : region.nodes)
    for (Region& inner : n->regions) for_each_results(inner, f);
}

/// Removes all nodes, users before producers, so that every list of users stays right.
void empty(Region& region) {
  region.results.clear();
  while (!region.nodes.empty()) {
    Node& last = *region.nodes.back();
    for (Region& inner : last.regions) empty(inner);
    last.clear_inputs();
    region.nodes.pop_back();
  }
}

bool erase_from(Region& region, Node* node) {
  for (auto it = region.nodes.begin(); it != region.nodes.end(); ++it) {
    if (it->get() == node) {
      region.nodes.erase(it);
      return true;
    }
    for (Region& inner : (*it)->regions)
      if (erase_from(inner, node)) return true;
  }
  return false;
}

}  // namespace

Node::~Node() { regions.clear(); }

void Node::set_input(size_t i, Value* value) {
  CUVIL_CHECK(i < inputs_.size(), "set_input past the end");
  if (inputs_[i]) forget(inputs_[i], this);
  inputs_[i] = value;
  if (value) value->users.push_back(this);
}

void Node::add_input(Value* value) {
  inputs_.push_back(value);
  if (value) value->users.push_back(this);
}

void Node::clear_inputs() {
  for (Value* v : inputs_)
    if (v) forget(v, this);
  inputs_.clear();
}

Value* Graph::add_input(std::string input_name, Type type) {
  auto v = std::make_unique<Value>();
  v->name = fresh_name(input_name);
  v->type = std::move(type);
  body.params.push_back(std::move(v));
  return body.params.back().get();
}

void Graph::add_output(std::string output_name, Value* value) {
  output_names.push_back(std::move(output_name));
  body.results.push_back(value);
}

Node* Graph::create(std::string op, std::vector<Value*> inputs, Attributes attributes, std::vector<Type> output_types,
                    Location location, Region* region, std::optional<Node*> before) {
  auto node = std::make_unique<Node>();
  Node* n = node.get();
  n->id = next_id_++;
  n->op = std::move(op);
  n->attributes = std::move(attributes);
  n->location = std::move(location);
  for (Value* v : inputs) n->add_input(v);
  for (Type& t : output_types) {
    auto v = std::make_unique<Value>();
    v->name = fresh_name("v");
    v->type = std::move(t);
    v->producer = n;
    n->outputs.push_back(std::move(v));
  }
  Region& home = region ? *region : body;
  auto at = home.nodes.end();
  if (before && *before) {
    at = std::find_if(home.nodes.begin(), home.nodes.end(), [&](const auto& p) { return p.get() == *before; });
    CUVIL_CHECK(at != home.nodes.end(), "the node to insert before is in another region");
  }
  home.nodes.insert(at, std::move(node));
  return n;
}

void Graph::replace_uses(Value* from, Value* to) {
  if (from == to) return;
  const std::vector<Node*> users = from->users;
  for (Node* user : users)
    for (size_t i = 0; i < user->inputs().size(); ++i)
      if (user->inputs()[i] == from) user->set_input(i, to);
  for_each_results(body, [&](std::vector<Value*>& results) { std::replace(results.begin(), results.end(), from, to); });
}

bool Graph::is_result(const Value* value) const {
  bool found = false;
  for_each_results(const_cast<Region&>(body), [&](const std::vector<Value*>& results) {
    found = found || std::find(results.begin(), results.end(), value) != results.end();
  });
  return found;
}

bool Graph::unused(const Value* value) const { return value->users.empty() && !is_result(value); }

void Graph::erase(Node* node) {
  for (const auto& v : node->outputs) CUVIL_CHECK(unused(v.get()), "an erased node's value is still used: " + v->name);
  for (Region& r : node->regions) empty(r);
  node->clear_inputs();
  CUVIL_CHECK(erase_from(body, node), "the erased node is not in this graph");
}

std::string Graph::fresh_name(std::string_view stem) {
  std::string base(stem.empty() ? "v" : stem);
  auto it = names_.find(base);
  if (it == names_.end()) {
    names_.emplace(base, 0);
    return base;
  }
  for (;;) {
    std::string candidate = base + "_" + std::to_string(++it->second);
    if (names_.emplace(candidate, 0).second) return candidate;
  }
}

namespace {

using ValueMap = std::map<const Value*, Value*>;

std::unique_ptr<Value> copy_value(const Value& v, Node* producer, ValueMap& map) {
  auto c = std::make_unique<Value>();
  c->name = v.name;
  c->type = v.type;
  c->producer = producer;
  map[&v] = c.get();
  return c;
}

Region copy_region(const Region& from, ValueMap& map) {
  Region to;
  for (const auto& p : from.params) to.params.push_back(copy_value(*p, nullptr, map));
  for (const auto& n : from.nodes) {
    auto c = std::make_unique<Node>();
    c->id = n->id;
    c->op = n->op;
    c->attributes = n->attributes;
    c->location = n->location;
    for (Value* in : n->inputs()) c->add_input(in ? map.at(in) : nullptr);
    for (const Region& r : n->regions) c->regions.push_back(copy_region(r, map));
    for (const auto& out : n->outputs) c->outputs.push_back(copy_value(*out, c.get(), map));
    to.nodes.push_back(std::move(c));
  }
  for (const Value* r : from.results) to.results.push_back(map.at(r));
  return to;
}

}  // namespace

Graph Graph::clone() const {
  Graph copy(name);
  copy.source = source;
  copy.output_names = output_names;
  copy.fixed_inputs = fixed_inputs;
  copy.next_id_ = next_id_;
  copy.names_ = names_;
  ValueMap map;
  copy.body = copy_region(body, map);
  return copy;
}

Graph Graph::prefix(const std::vector<std::string>& results) const {
  Graph part = clone();
  std::map<std::string, Value*, std::less<>> values;
  for (const auto& p : part.body.params) values[p->name] = p.get();
  for (const auto& n : part.body.nodes)
    for (const auto& v : n->outputs) values[v->name] = v.get();
  part.body.results.clear();
  part.output_names = results;
  for (const std::string& r : results) {
    const auto found = values.find(r);
    if (found == values.end())
      throw Error(CUVIL_MODEL_ERROR, "graph '" + name + "' has no value '" + r + "'; its text form shows all names");
    part.body.results.push_back(found->second);
  }
  for (auto it = part.body.nodes.end(); it != part.body.nodes.begin();) {
    Node* node = (--it)->get();
    if (!std::all_of(node->outputs.begin(), node->outputs.end(), [&](const auto& v) { return part.unused(v.get()); }))
      continue;
    ++it;
    part.erase(node);
  }
  return part;
}

std::vector<std::string> Graph::symbols() const {
  std::set<std::string> all;
  for (const auto& p : body.params)
    for (const Dim& d : p->type.shape)
      for (std::string& s : d.symbols()) all.insert(std::move(s));
  return {all.begin(), all.end()};
}

const Tensor* constant_of(const Value* value) {
  if (!value || !value->producer || value->producer->op != "Constant") return nullptr;
  return &value->producer->attr<Tensor>("value");
}

}  // namespace cuvil::ir
