#include "tests/conformance/case.h"

#include <algorithm>
#include <cmath>

#include "core/kernel/transform.h"

namespace cuvil::conformance {
namespace {

/// A small generator of our own: the same numbers everywhere.
class Random {
 public:
  explicit Random(std::string_view seed) {
    for (char ch : seed) state_ = (state_ ^ static_cast<uint8_t>(ch)) * 1099511628211U;
  }
  double uniform() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<double>(state_ >> 11) / 9007199254740992.0;
  }
  int64_t integer(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(uniform() * static_cast<double>(high - low + 1));
  }

 private:
  uint64_t state_ = 1469598103934665603U;
};

/// Attributes with sizes replaced like those of the inputs.
ir::Attributes with_symbols(ir::Attributes attributes, const std::map<int64_t, Dim>& names) {
  for (auto& [name, value] : attributes)
    if (auto* shape = std::get_if<Shape>(&value))
      for (Dim& d : *shape)
        if (auto it = names.find(d.as_const().value_or(-1)); it != names.end()) d = it->second;
  return attributes;
}

/// True if the operator takes the variant.
bool possible(const Case& c) {
  try {
    build(c);
    return true;
  } catch (const Error& e) {
    if (e.status() == CUVIL_INTERNAL_ERROR) throw;
    return false;
  }
}

/// The case with the sizes on `axes` of input 0 as symbols, and equal ones elsewhere; all axes of all inputs if null.
std::optional<Case> symbolic(const Case& plain, const std::string& name, const std::vector<size_t>* axes) {
  Case c = plain;
  c.name += "/" + name;
  std::map<int64_t, Dim> names;
  const auto give = [&](Dim& d) {
    const int64_t v = d.value();
    if (v == 1) return;
    const std::string symbol = "n" + std::to_string(v);
    names[v] = Dim::symbol(symbol);
    c.symbols[symbol] = v;
    d = names[v];
  };
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (!c.inputs[i]) continue;
    Shape& shape = c.inputs[i]->shape;
    if (axes && i > 0 && (!plain.inputs[0] || plain.inputs[i]->shape != plain.inputs[0]->shape)) continue;
    for (size_t a = 0; a < shape.size(); ++a)
      if (!axes || std::find(axes->begin(), axes->end(), a) != axes->end()) give(shape[a]);
  }
  if (names.empty()) return std::nullopt;
  c.attributes = with_symbols(c.attributes, names);
  if (possible(c)) return c;
  c.attributes = plain.attributes;
  return possible(c) ? std::optional(c) : std::nullopt;
}

std::optional<Case> blocked(const Case& plain, int block, bool input, bool output) {
  if (!plain.op->is(ops::kElementwise | ops::kBlockable) || plain.inputs.empty() || !plain.inputs[0]) return {};
  Case c = plain;
  c.name += "/c" + std::to_string(block) + (input ? "i" : "") + (output ? "o" : "");
  const ir::Layout layout = ir::Layout::nchwc(4, block);
  bool any = false;
  for (size_t i = 0; input && i < c.inputs.size(); ++i) {
    // Weights and the like are exempt: only inputs like the first one are images.
    const bool image = c.inputs[i] && c.inputs[i]->rank() == 4 && c.inputs[i]->layout.is_plain() &&
                       (plain.op->is(ops::kElementwise | ops::kConcat) || i == 0);
    if (!image) continue;
    c.inputs[i]->layout = layout;
    any = true;
  }
  if (output) c.output_layout = layout;
  if ((input && !any) || !possible(c)) return {};
  if (build(c).node->output()->type.rank() != 4 && output) return {};
  return c;
}

}  // namespace

std::vector<const ops::OpDef*> operators_with_kernels() {
  std::vector<const ops::OpDef*> defs;
  for (const ops::OpDef* d : ops::all())
    if (!d->is(ops::kConstant | ops::kGroup | ops::kHost | ops::kControl)) defs.push_back(d);
  return defs;
}

Case plain_case(const ops::OpDef& op, const ops::Sample& sample) {
  return {std::string(op.name) + "/" + sample.name, &op, &sample, sample.inputs, sample.attributes, {}, {}};
}

std::vector<Case> variants(const Case& plain) {
  std::vector<Case> all;
  const auto add = [&](std::optional<Case> c) {
    if (c) all.push_back(std::move(*c));
  };
  const std::vector<size_t> batch = {0}, space = {2, 3};
  std::optional<Case> every = symbolic(plain, "symbols", nullptr);
  add(every);
  if (!every) {
    add(symbolic(plain, "batch", &batch));
    add(symbolic(plain, "space", &space));
  }
  const bool image = !plain.inputs.empty() && plain.inputs[0] && plain.inputs[0]->rank() == 4;
  if (!image) return all;
  for (int block : {4, 16}) {
    const std::optional<Case> c = blocked(plain, block, true, true);
    add(c);
    if (c && block == 16) add(symbolic(*c, "space", &space));
  }
  add(blocked(plain, 8, false, true));
  add(blocked(plain, 8, true, false));
  return all;
}

BuiltCase build(const Case& c) {
  BuiltCase built;
  ops::Builder b(built.graph);
  std::vector<ir::Value*> inputs;
  for (size_t i = 0; i < c.inputs.size(); ++i)
    inputs.push_back(c.inputs[i] ? built.graph.add_input("x" + std::to_string(i), *c.inputs[i]) : nullptr);
  ir::Node* node = b.add_node(c.op->name, inputs, c.attributes, "y");
  for (const auto& out : node->outputs) {
    if (!c.output_layout.is_plain() && out->type.rank() == 4) out->type.layout = c.output_layout;
    built.graph.body.results.push_back(out.get());
    built.graph.output_names.push_back(out->name);
  }
  built.node = node;
  return built;
}

std::vector<std::vector<double>> input_values(const Case& c) {
  std::vector<std::vector<double>> all;
  Random random(std::string(c.op->name) + c.sample->name);
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    std::vector<double> values;
    if (i < c.sample->values.size()) values = c.sample->values[i];
    if (c.inputs[i] && values.empty()) {
      const DType t = c.inputs[i]->dtype;
      const int64_t n = num_elements(evaluate(*c.inputs[i], c.symbols).shape).value();
      const std::vector<double>& range = c.sample->range;
      for (int64_t k = 0; k < n; ++k) {
        double v = 0;
        if (is_float(t))
          v = range[0] + (range[1] - range[0]) * random.uniform();
        else if (t == DType::boolean)
          v = static_cast<double>(random.integer(0, 1));
        else
          v = static_cast<double>(random.integer(is_signed_int(t) ? -4 : 0, is_signed_int(t) ? 4 : 8));
        values.push_back(v);
      }
    }
    all.push_back(std::move(values));
  }
  return all;
}

Memory input_memory(const Case& c, const BuiltCase& built) {
  Memory memory;
  const std::vector<std::vector<double>> values = input_values(c);
  for (size_t i = 0; i < c.inputs.size(); ++i)
    if (const ir::Value* v = built.node->input(i)) memory[v] = encode(values[i], evaluate(v->type, c.symbols));
  return memory;
}

Outcome outcome_of(const Case& c, const BuiltCase& built, const Memory& memory, int32_t code) {
  Outcome outcome;
  outcome.code = code;
  for (const auto& out : built.node->outputs)
    outcome.outputs.push_back(decode(memory.at(out.get()), evaluate(out->type, c.symbols)));
  return outcome;
}

Outcome interpret(const Case& c, int vector_bytes, bool for_cpu) {
  const BuiltCase built = build(c);
  for (const auto& [a, b] : ops::requirements(*built.node))
    if (a.evaluate(c.symbols) != b.evaluate(c.symbols)) throw_internal(c.name + ": a requirement does not hold");
  Memory memory = input_memory(c, built);
  const TargetInfo target = target_of(vector_bytes);
  kernel::Kernel k = kernel_of(*built.node, target);
  if (for_cpu) k = kernel::lower_for_cpu(k, target);
  const int32_t code = run_kernel(k, *built.node, memory, c.symbols, kernel::interpret);
  return outcome_of(c, built, memory, code);
}

std::string difference(const std::vector<double>& got, const std::vector<double>& want, DType dtype, double tolerance) {
  if (got.size() != want.size())
    return std::to_string(got.size()) + " elements instead of " + std::to_string(want.size());
  if (dtype == DType::f16) tolerance = std::max(tolerance, 2e-3);
  if (dtype == DType::bf16) tolerance = std::max(tolerance, 2e-2);
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(want[i])) continue;
    const bool close = is_float(dtype) && std::isfinite(want[i])
                           ? std::fabs(got[i] - want[i]) <= tolerance * (1 + std::fabs(want[i]))
                           : got[i] == want[i];
    if (!close)
      return "element " + std::to_string(i) + " is " + std::to_string(got[i]) + " instead of " +
             std::to_string(want[i]);
  }
  return {};
}

}  // namespace cuvil::conformance
