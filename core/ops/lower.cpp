#include "core/ops/lower.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/ops/elementwise_nest.h"

namespace cuvil::ops {

using kernel::Expr;
namespace k = cuvil::kernel;

namespace {
constexpr std::string_view kFused = "Fused";

/// True if `node` computes with a result of one of `sources`, directly or through other nodes of `nodes`.
void mark_users(const std::vector<const ir::Node*>& order, std::set<const ir::Node*>& marked) {
  for (const ir::Node* n : order)
    for (const ir::Value* v : n->inputs())
      if (v && v->producer && marked.count(v->producer)) marked.insert(n);
}
}  // namespace

Group Group::of(const ir::Node& node) {
  Group g;
  g.node = &node;
  if (node.op != kFused) {
    if (def(node).is(kElementwise))
      g.prologue.push_back(&node);
    else
      g.anchor = &node;
    return g;
  }
  CUVIL_CHECK(node.regions.size() == 1, "a Fused node has one region");
  std::vector<const ir::Node*> order;
  for (const auto& n : node.regions[0].nodes) {
    order.push_back(n.get());
    const OpDef& d = def(*n);
    if (d.is(kElementwise) || d.is(kConstant)) continue;
    CUVIL_CHECK(!g.anchor, "a fused group has two nodes that are not elementwise: " + g.anchor->op + ", " + n->op);
    g.anchor = n.get();
  }
  std::set<const ir::Node*> after;
  if (g.anchor) {
    after.insert(g.anchor);
    mark_users(order, after);
  }
  for (const ir::Node* n : order) {
    if (n == g.anchor || def(*n).is(kConstant)) continue;
    (after.count(n) ? g.epilogue : g.prologue).push_back(n);
  }
  return g;
}

Expr immediate_of(const ir::Value* value) {
  const ir::Tensor* t = ir::constant_of(value);
  if (!t || num_elements(t->type.shape).as_const() != 1 || !t->type.layout.blocks.empty()) return {};
  const k::Type type{t->type.dtype, 1};
  return is_float(type.dtype) ? k::const_float(type, t->as_double(0)) : k::const_int(type, t->as_int(0));
}

namespace {
const ir::Region* region_of(const Group& group) { return group.node->op == kFused ? &group.node->regions[0] : nullptr; }
}  // namespace

std::vector<Port> inputs_of(const Group& group) {
  std::vector<Port> ports;
  const ir::Region* region = region_of(group);
  for (size_t i = 0; i < group.node->inputs().size(); ++i) {
    const ir::Value* v = group.node->input(i);
    if (!v) continue;
    ports.push_back({region ? region->params[i].get() : v, v->type, i, immediate_of(v)});
  }
  return ports;
}

std::vector<Port> results_of(const Group& group) {
  std::vector<Port> ports;
  const ir::Region* region = region_of(group);
  for (size_t i = 0; i < group.node->outputs.size(); ++i)
    ports.push_back({region ? region->results[i] : group.node->output(i), group.node->output(i)->type, i, {}});
  return ports;
}

LowerContext::LowerContext(const Group& group, const TargetInfo& target, std::string kernel_name,
                           const std::vector<Shape>* shapes)
    : group_(group),
      target_(target),
      node_(group.anchor             ? group.anchor
            : group.prologue.empty() ? nullptr
                                     : group.prologue.back()),
      builder_(std::move(kernel_name)),
      dims_(builder_),
      inputs_(inputs_of(group)),
      results_(results_of(group)) {
  CUVIL_CHECK(node_, "a group without a node");
  const auto declare = [&](std::string name, const ir::Type& type, k::Access access, size_t param) {
    if (!shapes) return TensorAccess::param(builder_, dims_, std::move(name), type, access);
    return TensorAccess(builder_.param(std::move(name), {type.dtype, 1}, extents((*shapes)[param]), access), type);
  };
  size_t param = 0;
  for (const Port& p : inputs_)
    memory_.push_back(declare("in" + std::to_string(p.index), p.type, k::Access::in, param++));
  for (const Port& p : results_)
    outputs_.push_back(declare("out" + std::to_string(p.index), p.type, k::Access::out, param++));
}

const Port* LowerContext::port_of(const ir::Value* value) const {
  for (const Port& p : inputs_)
    if (p.value == value) return &p;
  return nullptr;
}

const TensorAccess& LowerContext::memory(const Port& input) const {
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].index == input.index) return memory_[i];
  throw_internal("no input " + std::to_string(input.index));
}

bool LowerContext::reaches(const ir::Value* computed, const ir::Value* result) const {
  if (result == computed) return true;
  std::set<const ir::Node*> reached;
  for (const ir::Node* n : group_.epilogue)
    for (const ir::Value* v : n->inputs())
      if (v && (v == computed || (v->producer && reached.count(v->producer)))) reached.insert(n);
  return result->producer && reached.count(result->producer);
}

const ir::Type& LowerContext::in_type(size_t i) const {
  CUVIL_CHECK(node_->input(i), node_->op + " has no input " + std::to_string(i));
  return node_->input(i)->type;
}
bool LowerContext::has_in(size_t i) const { return node_->input(i) != nullptr; }
const ir::Type& LowerContext::out_type(size_t i) const { return node_->output(i)->type; }

const TensorAccess* LowerContext::in_memory(size_t i) const {
  const ir::Value* v = node_->input(i);
  const Port* p = v ? port_of(v) : nullptr;
  return p ? &memory(*p) : nullptr;
}

Expr elementwise_value(const ir::Node& node, std::vector<Expr> operands) {
  const auto narrow = [](DType t) { return t == DType::f16 || t == DType::bf16; };
  bool widened = false;
  for (Expr& e : operands) {
    if (!e || !narrow(e.type().dtype)) continue;
    e = k::cast({DType::f32, 1}, e);
    widened = true;
  }
  const DType want = node.output()->type.dtype;
  Expr value = def(node).expr(node, operands);
  if (value.type().dtype != want) {
    CUVIL_CHECK(narrow(want) || widened, "the expression of " + node.op + " has another type than its type rule says");
    value = k::cast({want, 1}, value);
  }
  return value;
}

Expr LowerContext::value_at(const ir::Value* value, const Coords& at, const Shape& shape, Known& known) {
  if (auto it = known.find(value); it != known.end()) return it->second;
  Expr result;
  const Port* port = port_of(value);
  if (port && port->immediate) {
    result = k::broadcast(port->immediate, at.lanes);
  } else if (port) {
    result = memory(*port).load(broadcast_coords(at, shape, value->type.shape));
  } else if (Expr inside = immediate_of(value)) {
    result = k::broadcast(inside, at.lanes);
  } else {
    const ir::Node* producer = value->producer;
    CUVIL_CHECK(producer && def(*producer).is(kElementwise),
                "'" + value->name + "' is no input of its group and not elementwise either");
    const Coords inner = broadcast_coords(at, shape, value->type.shape);
    const bool same = value->type.shape == shape;
    Known fresh;
    std::vector<Expr> operands;
    for (const ir::Value* v : producer->inputs())
      operands.push_back(v ? value_at(v, inner, value->type.shape, same ? known : fresh) : Expr());
    result = elementwise_value(*producer, std::move(operands));
    if (result.type().lanes != at.lanes) result = k::broadcast(result, at.lanes);
    // A name of its own: an expression is a tree, and whoever uses the value may do so several times.
    result = builder_.let("v", result);
  }
  known[value] = result;
  return result;
}

Expr LowerContext::load(size_t i, const Coords& at) {
  Known known;
  const ir::Type& type = in_type(i);
  CUVIL_CHECK(static_cast<int>(at.index.size()) == type.rank(),
              "coordinates of another rank than input " + std::to_string(i) + " of " + node_->op);
  Expr value = value_at(node_->input(i), at, type.shape, known);
  // What is off reads as 0, memory or not: padding must not see a fused producer's f(0).
  if (value->op != k::Op::load)
    if (Expr on = at.predicate()) value = k::select(on, value, k::constant(value.type(), 0));
  return value;
}

void LowerContext::store(const Coords& at, Expr value, size_t i) {
  const ir::Value* computed = node_->output(i);
  if (!value.type().is_vector() && at.lanes > 1) value = k::broadcast(value, at.lanes);
  if (value.type().dtype != computed->type.dtype) value = k::cast({computed->type.dtype, 1}, value);
  if (!group_.epilogue.empty()) value = builder_.let("r", value);
  Known known{{computed, value}};
  for (size_t r = 0; r < results_.size(); ++r) {
    const ir::Value* v = results_[r].value;
    if (!reaches(computed, v)) continue;
    CUVIL_CHECK(v->type.shape == computed->type.shape, "an epilogue changes the shape of its anchor's result");
    outputs_[r].store(builder_, at, value_at(v, at, computed->type.shape, known));
  }
}

const TensorAccess& LowerContext::out_memory(size_t i) const {
  for (size_t r = 0; r < results_.size(); ++r)
    if (reaches(node_->output(i), results_[r].value)) return outputs_[r];
  throw_internal("output " + std::to_string(i) + " of " + node_->op + " reaches no result of its group");
}

int LowerContext::lanes() const {
  int widest = 4;
  for (const Port& p : inputs_) widest = std::max(widest, size_of(p.type.dtype));
  for (const Port& p : results_) widest = std::max(widest, size_of(p.type.dtype));
  return std::max(1, target_.vector_bytes / widest);
}

std::vector<Expr> LowerContext::extents(const Shape& shape) {
  std::vector<Expr> result;
  for (const Dim& d : shape) result.push_back(dims_(d));
  return result;
}

k::Kernel lower_reference(const Group& group, const TargetInfo& target, std::string kernel_name) {
  if (!group.anchor) return lower_elementwise(group, target, std::move(kernel_name));
  const OpDef& d = def(*group.anchor);
  CUVIL_CHECK(d.lower, d.is(kHost) ? std::string(d.name) + " is a host operator and has no kernel"
                                   : std::string(d.name) + " has no lowering");
  LowerContext c(group, target, std::move(kernel_name));
  d.lower(c);
  return c.finish();
}

}  // namespace cuvil::ops
