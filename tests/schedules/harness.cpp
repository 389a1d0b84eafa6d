#include "tests/schedules/harness.h"

#include <cmath>
#include <limits>
#include <random>

#include "core/base/error.h"
#include "core/ops/builder.h"

namespace cuvil::schedules::test {

namespace {
int64_t value_of(const Dim& d, const std::map<std::string, int64_t>& symbols) {
  const std::optional<int64_t> v = d.evaluate(symbols);
  CUVIL_CHECK(v, "a symbol of the case has no value: " + d.str());
  return *v;
}
std::vector<int64_t> numbers(const Shape& shape, const std::map<std::string, int64_t>& symbols) {
  std::vector<int64_t> r;
  for (const Dim& d : shape) r.push_back(value_of(d, symbols));
  return r;
}
int64_t product(const std::vector<int64_t>& v) {
  int64_t p = 1;
  for (int64_t x : v) p *= x;
  return p;
}

/// Calls body(logical offset or -1 for padding, physical offset).
void for_each_position(const ir::Type& type, const std::map<std::string, int64_t>& symbols,
                       const std::function<void(int64_t, int64_t)>& body) {
  const std::vector<int64_t> logical = numbers(type.shape, symbols);
  const std::vector<int64_t> physical = numbers(type.layout.physical_shape(type.shape), symbols);
  const size_t rank = logical.size();
  const int64_t count = product(physical);
  for (int64_t at = 0; at < count; ++at) {
    std::vector<int64_t> index(physical.size());
    int64_t rest = at;
    for (size_t i = physical.size(); i-- > 0;) {
      index[i] = rest % physical[i];
      rest /= physical[i];
    }
    std::vector<int64_t> position(rank, 0), inner(rank, 1);
    for (size_t b = type.layout.blocks.size(); b-- > 0;) {
      const ir::Layout::Block& block = type.layout.blocks[b];
      const size_t a = static_cast<size_t>(block.axis);
      position[a] += index[rank + b] * inner[a];
      inner[a] *= block.size;
    }
    for (size_t i = 0; i < rank; ++i) {
      const size_t a = type.layout.order.empty() ? i : static_cast<size_t>(type.layout.order[i]);
      position[a] += index[i] * inner[a];
    }
    int64_t offset = 0;
    bool inside = true;
    for (size_t a = 0; a < rank; ++a) {
      inside = inside && position[a] < logical[a];
      offset = offset * logical[a] + position[a];
    }
    body(inside ? offset : -1, at);
  }
}

std::vector<ir::Value*> epilogue_of(ir::Graph& g, ir::Region& region, Epilogue kind, ir::Value* y,
                                    ir::Value* residual) {
  const auto add = [&](const char* op, std::vector<ir::Value*> in) {
    ir::Node* n = g.create(op, std::move(in), {}, {y->type}, {}, &region);
    ops::normalise(*n);
    return n->output();
  };
  switch (kind) {
    case Epilogue::none:
      return {y};
    case Epilogue::relu:
      return {add("Relu", {y})};
    case Epilogue::residual_relu:
      return {add("Relu", {add("Add", {y, residual})})};
    case Epilogue::two_users:
      return {add("Add", {add("Relu", {y}), y})};
  }
  return {};
}
}  // namespace

std::string Case::name() const {
  std::string s = op;
  for (const auto& i : inputs) s += i ? " " + to_string(*i) : " -";
  for (const auto& [key, value] : attributes) {
    s += " " + key + "=";
    if (const auto* v = std::get_if<std::vector<int64_t>>(&value))
      for (int64_t x : *v) s += std::to_string(x) + ",";
    else if (const auto* i = std::get_if<int64_t>(&value))
      s += std::to_string(*i);
  }
  for (const auto& [key, value] : symbols) s += " " + key + ":" + std::to_string(value);
  return s + " epilogue " + std::to_string(static_cast<int>(epilogue));
}

namespace {
Problem make(const Case& c, const Schedule* schedule, const TargetInfo* target) {
  // Types, from a graph of the operator alone.
  ir::Graph alone;
  std::vector<ir::Value*> values;
  for (size_t i = 0; i < c.inputs.size(); ++i)
    values.push_back(c.inputs[i] ? alone.add_input("x" + std::to_string(i), {DType::f32, *c.inputs[i], {}}) : nullptr);
  ir::Node* node = ops::Builder(alone).add_node(c.op, values, c.attributes);
  std::vector<ir::Type> types;
  for (ir::Value* v : values) types.push_back(v ? v->type : ir::Type{});
  ir::Type out = node->output()->type;
  if (schedule) {
    if (schedule->prepack)
      for (const Prepack& p : schedule->prepack(ops::Group::of(*node), *target)) types[p.input].layout = p.layout;
    const ir::Layout blocked = ir::Layout::nchwc(4, target->lanes_f32());
    if (c.block_input && types[0].rank() == 4) types[0].layout = blocked;
    if (c.block_output && out.rank() == 4) out.layout = blocked;
  }

  Problem p;
  ir::Graph& g = p.graph;
  std::vector<ir::Value*> outer;
  for (size_t i = 0; i < types.size(); ++i)
    outer.push_back(values[i] ? g.add_input("x" + std::to_string(i), types[i]) : nullptr);
  ir::Value* residual = c.epilogue == Epilogue::residual_relu ? g.add_input("residual", out) : nullptr;
  if (c.epilogue == Epilogue::none) {
    p.node = g.create(c.op, outer, node->attributes, {out});
  } else {
    std::vector<ir::Value*> given;
    for (ir::Value* v : outer)
      if (v) given.push_back(v);
    if (residual) given.push_back(residual);
    p.node = g.create("Fused", given, {}, {out});
    p.node->regions.emplace_back();
    ir::Region& region = p.node->regions[0];
    std::map<ir::Value*, ir::Value*> inside;
    for (ir::Value* v : given) {
      auto param = std::make_unique<ir::Value>();
      param->name = g.fresh_name("p");
      param->type = v->type;
      inside[v] = param.get();
      region.params.push_back(std::move(param));
    }
    std::vector<ir::Value*> in;
    for (ir::Value* v : outer) in.push_back(v ? inside[v] : nullptr);
    ir::Node* anchor = g.create(c.op, in, node->attributes, {out}, {}, &region);
    region.results = epilogue_of(g, region, c.epilogue, anchor->output(), residual ? inside[residual] : nullptr);
  }
  g.body.results.push_back(p.node->output());
  return p;
}
}  // namespace

Problem plain(const Case& c) { return make(c, nullptr, nullptr); }
Problem laid_out(const Case& c, const Schedule& schedule, const TargetInfo& target) {
  return make(c, &schedule, &target);
}

std::vector<float> to_physical(const ir::Type& type, const std::vector<float>& logical,
                               const std::map<std::string, int64_t>& symbols) {
  std::vector<float> r(static_cast<size_t>(product(numbers(type.layout.physical_shape(type.shape), symbols))));
  for_each_position(type, symbols, [&](int64_t from, int64_t to) {
    r[static_cast<size_t>(to)] =
        from < 0 ? std::numeric_limits<float>::quiet_NaN() : logical[static_cast<size_t>(from)];
  });
  return r;
}

std::vector<float> to_logical(const ir::Type& type, const std::vector<float>& physical,
                              const std::map<std::string, int64_t>& symbols) {
  std::vector<float> r(static_cast<size_t>(product(numbers(type.shape, symbols))));
  for_each_position(type, symbols, [&](int64_t to, int64_t from) {
    if (to >= 0) r[static_cast<size_t>(to)] = physical[static_cast<size_t>(from)];
  });
  return r;
}

std::vector<std::vector<float>> random_inputs(const Case& c) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<std::vector<float>> r;
  const Problem p = plain(c);
  for (const ir::Value* v : p.node->inputs()) {
    std::vector<float> values(v ? static_cast<size_t>(product(numbers(v->type.shape, c.symbols))) : 0);
    for (float& x : values) x = uniform(random);
    r.push_back(std::move(values));
  }
  return r;
}

std::vector<float> run(const Problem& problem, const kernel::Kernel& kernel,
                       const std::vector<std::vector<float>>& inputs, const std::map<std::string, int64_t>& symbols,
                       const Runner& runner) {
  std::vector<std::vector<float>> memory;
  for (size_t i = 0; i < problem.node->inputs().size(); ++i)
    if (const ir::Value* v = problem.node->input(i)) memory.push_back(to_physical(v->type, inputs[i], symbols));
  const ir::Type& out = problem.node->output()->type;
  memory.emplace_back(static_cast<size_t>(value_of(out.bytes(), symbols) / 4), std::numeric_limits<float>::quiet_NaN());
  std::vector<kernel::Argument> arguments;
  for (std::vector<float>& m : memory) arguments.push_back({m.data(), static_cast<int64_t>(m.size() * 4)});
  std::vector<int64_t> dims;
  for (const kernel::Var& d : kernel.dims) dims.push_back(symbols.at(d->name));
  const int32_t code = runner(kernel, arguments, dims);
  CUVIL_CHECK(code == 0, "the kernel returned " + std::to_string(code));
  return to_logical(out, memory.back(), symbols);
}

double difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(double{a[i]} - double{b[i]}) / (1 + std::abs(double{b[i]}));
    if (!(d <= worst)) worst = std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
  }
  return worst;
}

}  // namespace cuvil::schedules::test
