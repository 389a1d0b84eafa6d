// From a graph with schedules to kernels, launches and buffers. Memory follows in assign_memory.cpp.
#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "core/abi/hash.h"
#include "core/ops/builder.h"
#include "core/ops/lower.h"
#include "core/ops/op.h"
#include "core/plan/choose_schedules.h"
#include "core/plan/memory.h"
#include "core/plan/plan.h"
#include "core/schedules/schedule.h"

namespace cuvil::plan {
namespace {

std::string kernel_name(const ir::Node& node, size_t index) {
  std::string name = "k" + std::to_string(index);
  auto append = [&](std::string_view op) {
    name += '_';
    for (char c : op) name += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  };
  const ops::Group group = ops::Group::of(node);
  for (const ir::Node* n : group.prologue) append(n->op);
  if (group.anchor) append(group.anchor->op);
  for (const ir::Node* n : group.epilogue) append(n->op);
  if (name.size() > 60) name.resize(60);
  return name;
}

/// What people read: the user's names of the group's values.
std::string step_name(const ir::Node& node) { return node.outputs.empty() ? node.op : node.output()->name; }

/// The same for equal tensors. Of size and both ends only: weights are not read from disk to plan.
uint64_t fingerprint(const ir::Tensor& tensor) {
  constexpr size_t kEnd = 4096;
  const auto bytes = static_cast<size_t>(tensor.bytes()), part = std::min(bytes, kEnd);
  return xxh64(tensor.raw() + (bytes - part), part, xxh64(tensor.raw(), part, bytes));
}

class Planner {
 public:
  Planner(const ir::Graph& graph, const TargetInfo& target) : graph_(graph), target_(target) {}

  Plan run() {
    plan_.name = graph_.name;
    refuse_unsupported();
    for (const ir::Value* result : graph_.body.results) results_.insert(memory_of(result));
    bind_inputs();
    for (const auto& node : graph_.body.nodes) add_requirements(*node);
    add_nodes(graph_.body);
    bind_outputs();
    assign_memory(plan_);
    return std::move(plan_);
  }

 private:
  void refuse_unsupported() const {
    std::string all;
    list_unsupported(graph_.body, all);
    if (!all.empty()) throw_unsupported("these operators have no kernel on this target:" + all);
  }

  static void list_unsupported(const ir::Region& region, std::string& all) {
    for (const auto& node : region.nodes) {
      const ops::OpDef& def = ops::def(*node);
      if (def.is(ops::kControl))
        for (const ir::Region& inner : node->regions) list_unsupported(inner, all);
      const bool has_kernel = def.expr || def.lower || def.is(ops::kGroup);
      if (def.is(ops::kConstant | ops::kView | ops::kHost | ops::kControl) || has_kernel) continue;
      all += "\n  " + node->op + " '" + node->output()->name + "'" +
             (node->location.known() ? " at " + node->location.str() : "");
    }
  }

  int add_buffer(const ir::Value& value, BufferKind kind) {
    Buffer b;
    b.name = value.name;
    b.kind = kind;
    b.bytes = value.type.bytes();
    plan_.buffers.push_back(std::move(b));
    const int index = static_cast<int>(plan_.buffers.size()) - 1;
    buffer_of_[&value] = index;
    return index;
  }

  void add_requirements(const ir::Node& node) {
    for (auto& [left, right] : ops::requirements(node)) {
      auto known = [&](const Requirement& r) { return r.left == left && r.right == right; };
      if (std::any_of(plan_.requirements.begin(), plan_.requirements.end(), known)) continue;
      plan_.requirements.push_back({left, right, "sizes of the inputs of " + node.op + " do not fit", node.location});
    }
    for (const ir::Region& region : node.regions)
      for (const auto& inner : region.nodes) add_requirements(*inner);
  }

  void bind_inputs() {
    for (size_t i = 0; i < graph_.body.params.size(); ++i) {
      const ir::Value& v = *graph_.body.params[i];
      CUVIL_CHECK(v.type.layout.is_plain(), "graph inputs are plain");
      plan_.inputs.push_back({v.name, v.type.dtype, v.type.shape, add_buffer(v, BufferKind::input)});
      if (auto it = graph_.fixed_inputs.find(v.name); it != graph_.fixed_inputs.end())
        plan_.inputs.back().fixed = it->second;
    }
    for (const std::string& name : graph_.symbols()) plan_.symbols.push_back(bind_symbol(name));
  }

  Symbol bind_symbol(const std::string& name) const {
    for (size_t i = 0; i < plan_.inputs.size(); ++i)
      for (size_t a = 0; a < plan_.inputs[i].shape.size(); ++a)
        if (plan_.inputs[i].shape[a] == Dim::symbol(name)) return {name, static_cast<int>(i), static_cast<int>(a)};
    throw_unsupported("symbolic dimension '" + name +
                      "' is nowhere the whole extent of an input's axis, so its value cannot be read off the inputs; "
                      "declare the input's shape with a plain symbol");
  }

  void bind_outputs() {
    for (size_t i = 0; i < graph_.body.results.size(); ++i) {
      const ir::Value* v = graph_.body.results[i];
      CUVIL_CHECK(v->type.layout.is_plain(), "graph outputs are plain");
      const int buffer = buffer_of_.at(v);
      const int root = root_of(plan_, buffer);
      CUVIL_CHECK(plan_.buffers[root].kind == BufferKind::arena,
                  "an output needs memory of its own: add_output_copies");
      plan_.buffers[root].kind = BufferKind::output;
      plan_.outputs.push_back({graph_.output_names[i], v->type.dtype, v->type.shape, buffer});
    }
  }

  void add_nodes(const ir::Region& region) {
    for (const auto& node : region.nodes) add_node(*node);
  }

  void add_node(const ir::Node& node) {
    const ops::OpDef& def = ops::def(node);
    if (def.is(ops::kControl)) return node.regions.size() == 2 ? add_if(node) : add_loop(node);
    if (const ir::Tensor* tensor = ir::constant_of(node.output())) {
      const int b = add_buffer(*node.output(), BufferKind::constant);
      plan_.buffers[b].constant = add_constant(*tensor);
    } else if (def.is(ops::kView)) {
      const int b = add_buffer(*node.output(), BufferKind::arena);
      plan_.buffers[b].view_of = buffer_of_.at(node.input(0));
    } else if (def.is(ops::kConcat) && concat_in_place(node)) {
      // its inputs were written where they belong
    } else if (def.is(ops::kHost)) {
      add_host_step(node, def);
    } else {
      add_kernel_step(node);
    }
  }

  /// Concatenation without a copy: where the parts lie one after the other in the result, the steps that write the
  /// parts write into the result's memory. Each part must be arena memory that nobody else has claimed.
  bool concat_in_place(const ir::Node& node) {
    const ir::Type& type = node.output()->type;
    const auto axis = static_cast<int>(node.attr<int64_t>("axis"));
    if (!outermost(type, axis)) return false;
    std::set<int> roots;
    Dim offset = 0;
    std::vector<Dim> offsets;
    for (const ir::Value* part : node.inputs()) {
      const int block = part->type.layout.block_of(axis);
      const bool last = part == node.inputs().back();
      if (part->type.layout != type.layout || (!last && !part->type.shape[axis].divisible_by(block))) return false;
      if (!last && !part->type.bytes().divisible_by(CUVIL_ALIGNMENT)) return false;
      if (results_.count(memory_of(part))) return false;
      const int root = root_of(plan_, buffer_of_.at(part));
      const Buffer& b = plan_.buffers[root];
      if (b.kind != BufferKind::arena || !(b.bytes == part->type.bytes()) || !roots.insert(root).second) return false;
      offsets.push_back(offset);
      offset = offset + part->type.bytes();
    }
    const int whole = add_buffer(*node.output(), BufferKind::arena);
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      Buffer& b = plan_.buffers[root_of(plan_, buffer_of_.at(node.input(i)))];
      b.view_of = whole;
      b.view_offset = offsets[i];
    }
    return true;
  }

  /// True if only extents of 1 lie outside `axis` in memory: then a slice of the axis is one piece.
  static bool outermost(const ir::Type& type, int axis) {
    std::vector<int> order = type.layout.order;
    for (int a = 0; static_cast<int>(order.size()) < type.rank(); ++a) order.push_back(a);
    for (int a : order) {
      if (a == axis) return true;
      if (!(type.shape[a] == Dim(1))) return false;
    }
    return false;
  }

  int add_constant(const ir::Tensor& tensor) {
    std::vector<int>& alike = constants_alike_[fingerprint(tensor)];
    for (int i : alike)
      if (ir::equal(plan_.constants[i], tensor)) return i;
    alike.push_back(static_cast<int>(plan_.constants.size()));
    plan_.constants.push_back(tensor);
    return alike.back();
  }

  void add_arguments(const ir::Node& node, Step& step) {
    for (const ir::Value* in : node.inputs())
      if (in) step.arguments.push_back({buffer_of_.at(in)});
    step.inputs = static_cast<int>(step.arguments.size());
    for (const auto& out : node.outputs) step.arguments.push_back({add_buffer(*out, BufferKind::arena)});
    for (const Argument& a : step.arguments) step.bytes = step.bytes + plan_.buffers[a.buffer].bytes;
    step.name = step_name(node);
    step.location = node.location;
  }

  void add_host_step(const ir::Node& node, const ops::OpDef& def) {
    Step step;
    add_arguments(node, step);
    size_t i = 0;
    auto describe = [&](const ir::Value& value) {
      step.arguments[i].dtype = value.type.dtype;
      step.arguments[i++].shape = value.type.shape;
    };
    for (const ir::Value* in : node.inputs())
      if (in) describe(*in);
    for (const auto& out : node.outputs) describe(*out);
    step.host = def.host;
    step.host_attributes = node.attributes;
    // What the operands' sizes say is not said again.
    std::erase_if(step.host_attributes,
                  [](const auto& a) { return a.first == "sets" || std::holds_alternative<Shape>(a.second); });
    step.schedule = "host";
    add_symbols(node, step);
    plan_.steps.push_back(std::move(step));
  }

  /// Symbols that a step sets, in the order of attribute "sets"; "upper" bounds them.
  void add_symbols(const ir::Node& node, Step& step) {
    if (!node.has("sets")) return;
    const auto& names = node.attr<std::vector<std::string>>("sets");
    const auto& upper = node.attr<Shape>("upper");
    CUVIL_CHECK(names.size() == upper.size(), "every symbol that a node sets has an upper bound");
    for (size_t i = 0; i < names.size(); ++i) {
      Symbol symbol{names[i]};
      symbol.step = static_cast<int>(plan_.steps.size());
      symbol.upper = upper[i];
      plan_.symbols.push_back(std::move(symbol));
      step.symbols.push_back(names[i]);
    }
  }

  // ---- control flow: steps of the regions in place, copies to where values meet, and jumps

  struct Operand {
    int buffer;
    DType dtype;
    Shape shape;
    Operand(int buffer, const ir::Type& type) : buffer(buffer), dtype(type.dtype), shape(type.shape) {}
  };

  int add_temporary(const std::string& name, const ir::Type& type) {
    Buffer b;
    b.name = name;
    b.kind = BufferKind::arena;
    b.bytes = type.bytes();
    plan_.buffers.push_back(std::move(b));
    return static_cast<int>(plan_.buffers.size()) - 1;
  }

  Operand constant(const std::string& name, ir::Tensor tensor) {
    Buffer b;
    b.name = name;
    b.kind = BufferKind::constant;
    b.bytes = tensor.type.bytes();
    b.constant = add_constant(tensor);
    plan_.buffers.push_back(std::move(b));
    return {static_cast<int>(plan_.buffers.size()) - 1, tensor.type};
  }

  static ir::Tensor largest() {
    ir::Tensor t = ir::Tensor::from_ints({std::numeric_limits<int64_t>::max()});
    t.type.shape.clear();
    return t;
  }

  void host_step(const ir::Node& node, std::string host, const std::vector<Operand>& inputs,
                 const std::vector<Operand>& outputs) {
    Step step;
    for (const auto* list : {&inputs, &outputs})
      for (const Operand& o : *list) step.arguments.push_back({o.buffer, o.dtype, o.shape});
    step.inputs = static_cast<int>(inputs.size());
    step.name = step_name(node);
    step.location = node.location;
    step.schedule = host.empty() ? "jump" : "host";
    step.host = std::move(host);
    plan_.steps.push_back(std::move(step));
  }

  /// A jump; its target is set later. With a condition: only where that is false.
  size_t jump(const ir::Node& node, const std::vector<Operand>& condition = {}) {
    host_step(node, "", condition, {});
    return plan_.steps.size() - 1;
  }
  void land(size_t jump) { plan_.steps[jump].target = static_cast<int>(plan_.steps.size()); }

  void copy(const ir::Node& node, int from, int to, const ir::Type& type) {
    if (!(type.bytes() == Dim(0))) host_step(node, "Copy", {{from, type}}, {{to, type}});
  }

  void bind_params(const ir::Region& region, size_t first_param, const ir::Node& node, size_t first_input) {
    for (size_t i = first_param; i < region.params.size(); ++i)
      buffer_of_[region.params[i].get()] = buffer_of_.at(node.input(first_input + i - first_param));
  }

  void add_if(const ir::Node& node) {
    const size_t to_else = jump(node, {{buffer_of_.at(node.input(0)), node.input(0)->type}});
    for (const auto& v : node.outputs) add_buffer(*v, BufferKind::arena);
    const auto branch = [&](const ir::Region& region) {
      bind_params(region, 0, node, 1);
      const int first = static_cast<int>(plan_.buffers.size());
      add_nodes(region);
      for (size_t i = 0; i < region.results.size(); ++i) {
        const int from = buffer_of_.at(region.results[i]), to = buffer_of_.at(node.output(i));
        // What the branch itself computes is computed in place.
        const int root = root_of(plan_, from);
        Buffer& b = plan_.buffers[root];
        if (root >= first && b.kind == BufferKind::arena && b.bytes == plan_.buffers[to].bytes)
          b.view_of = to;
        else
          copy(node, from, to, node.output(i)->type);
      }
    };
    branch(node.regions[0]);
    const size_t to_end = jump(node);
    land(to_else);
    branch(node.regions[1]);
    land(to_end);
  }

  void add_loop(const ir::Node& node) {
    const ir::Region& body = node.regions[0];
    const auto carried = static_cast<size_t>(node.attr<int64_t>("carried"));
    const ir::Type number{DType::i64, {}, {}}, truth{DType::boolean, {}, {}};
    const std::string& name = node.outputs.empty() ? "loop" : node.output()->name;
    // Before: the counter, the condition, the carried values.
    const Operand counter{add_temporary(name + ".iteration", number), number};
    copy(node, constant(name + ".zero", ir::Tensor::scalar(DType::i64, 0)).buffer, counter.buffer, number);
    const Operand trips =
        node.input(0) ? Operand{buffer_of_.at(node.input(0)), number} : constant(name + ".trips", largest());
    const ir::Tensor* always = ir::constant_of(body.results[0]);
    const bool endless = always && always->as_int(0) != 0;
    Operand condition = node.input(1) ? Operand{buffer_of_.at(node.input(1)), truth}
                                      : constant(name + ".true", ir::Tensor::scalar(DType::boolean, 1));
    if (!endless) {
      const int state = add_temporary(name + ".condition", truth);
      copy(node, condition.buffer, state, truth);
      condition.buffer = state;
    }
    std::vector<int> state;
    for (size_t i = 0; i < carried; ++i) {
      const ir::Value& first = *node.input(2 + i);
      state.push_back(add_temporary(node.output(i)->name, first.type));
      buffer_of_[node.output(i)] = state.back();
      buffer_of_[body.params[1 + i].get()] = state.back();
      copy(node, buffer_of_.at(&first), state.back(), first.type);
    }
    for (size_t i = carried; i < node.outputs.size(); ++i) add_buffer(*node.output(i), BufferKind::arena);
    buffer_of_[body.params[0].get()] = counter.buffer;
    bind_params(body, 1 + carried, node, 2 + carried);

    const int head = static_cast<int>(plan_.steps.size());
    const Operand go{add_temporary(name + ".goes_on", truth), truth};
    host_step(node, "LoopTest", {counter, trips, condition}, {go});
    const size_t to_end = jump(node, {go});
    add_nodes(body);
    for (size_t i = 1 + carried; i < body.results.size(); ++i) {
      const ir::Value& stacked = *node.output(i - 1);
      ir::Type room = stacked.type;  // of as many slices as there may be
      if (!node.attr<Shape>("upper").empty()) room.shape[0] = node.attr<Shape>("upper")[0];
      host_step(node, "PutSlice", {{buffer_of_.at(body.results[i]), body.results[i]->type}, counter},
                {{buffer_of_.at(&stacked), room}});
    }
    carry(node, state);
    if (!endless) copy(node, buffer_of_.at(body.results[0]), condition.buffer, truth);
    host_step(node, "LoopNext", {counter}, {counter});
    plan_.steps[jump(node)].target = head;
    plan_.loops.push_back({head, static_cast<int>(plan_.steps.size()) - 1});
    land(to_end);
    if (node.has("sets") && !node.attr<std::vector<std::string>>("sets").empty()) {
      // The number of iterations is known now.
      host_step(node, "SetSymbol", {counter}, {});
      Step step = std::move(plan_.steps.back());
      plan_.steps.pop_back();
      add_symbols(node, step);
      plan_.steps.push_back(std::move(step));
    }
  }

  /// The next values of what a loop carries take their place: through copies where one is another's old value.
  void carry(const ir::Node& node, const std::vector<int>& state) {
    const ir::Region& body = node.regions[0];
    std::vector<int> from;
    for (size_t i = 0; i < state.size(); ++i) {
      int buffer = buffer_of_.at(body.results[1 + i]);
      const int root = root_of(plan_, buffer);
      const bool others =
          std::any_of(state.begin(), state.end(), [&](int s) { return s != state[i] && root_of(plan_, s) == root; });
      if (others) {
        const int kept = add_temporary(node.output(i)->name + ".next", node.output(i)->type);
        copy(node, buffer, kept, node.output(i)->type);
        buffer = kept;
      }
      from.push_back(buffer);
    }
    for (size_t i = 0; i < state.size(); ++i)
      if (from[i] != state[i]) copy(node, from[i], state[i], node.output(i)->type);
  }

  void add_kernel_step(const ir::Node& node) {
    const auto& schedule_name = node.attr<std::string>("schedule");
    const schedules::Schedule* schedule = schedules::find(schedule_name);
    CUVIL_CHECK(schedule, "unknown schedule " + schedule_name);
    const ops::Group group = ops::Group::of(node);
    kernel::Kernel kernel = schedule->build(group, target_, kernel_name(node, plan_.kernels.size()));

    Step step;
    add_arguments(node, step);
    step.schedule = schedule_name;
    step.kernel = static_cast<int>(plan_.kernels.size());
    step.flops = flops_of(group);
    for (const kernel::Var& d : kernel.dims) step.symbols.push_back(d->name);
    for (const kernel::Phase& p : kernel.phases) step.tasks.push_back(ops::to_dim(p.tasks));
    step.scratch_bytes = ops::to_dim(kernel::scratch_bytes(kernel));
    add_workspaces(kernel, step);
    plan_.kernels.push_back(std::move(kernel));
    plan_.steps.push_back(std::move(step));
  }

  /// Parameters after the group's own inputs and outputs are workspaces that all phases share.
  void add_workspaces(const kernel::Kernel& kernel, Step& step) {
    for (size_t i = step.arguments.size(); i < kernel.params.size(); ++i) {
      const kernel::BufferInfo& p = *kernel.params[i];
      CUVIL_CHECK(p.access == kernel::Access::work, "kernel " + kernel.name + " has an unexpected parameter " + p.name);
      Buffer b;
      b.name = step.name + "." + p.name;
      b.kind = BufferKind::arena;
      b.bytes = size_of(p.type.dtype);
      for (const kernel::Expr& extent : p.shape) b.bytes = b.bytes * ops::to_dim(extent);
      plan_.buffers.push_back(std::move(b));
      step.arguments.push_back({static_cast<int>(plan_.buffers.size()) - 1});
    }
    CUVIL_CHECK(step.arguments.size() == kernel.params.size(), "kernel " + kernel.name + " lacks parameters");
  }

  static Dim flops_of(const ops::Group& group) {
    Dim total = 0;
    auto count = [&](const ir::Node& n) {
      const ops::OpDef& def = ops::def(n);
      total = total + (def.flops ? def.flops(n) : num_elements(n.output()->type.shape));
    };
    for (const ir::Node* n : group.prologue) count(*n);
    if (group.anchor) count(*group.anchor);
    for (const ir::Node* n : group.epilogue) count(*n);
    return total;
  }

  const ir::Graph& graph_;
  const TargetInfo& target_;
  Plan plan_;
  std::map<const ir::Value*, int> buffer_of_;
  std::map<uint64_t, std::vector<int>> constants_alike_;  ///< by fingerprint()
  std::set<const ir::Value*> results_;                    ///< values whose memory a graph output is
};

}  // namespace

Plan make_plan(const ir::Graph& graph, const TargetInfo& target) { return Planner(graph, target).run(); }

}  // namespace cuvil::plan
