#include "tests/conformance/case.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/kernel/interpret.h"
#include "core/kernel/verify.h"
#include "core/ops/lower.h"
#include "core/ops/reorder.h"

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

Shape evaluate(const Shape& shape, const std::map<std::string, int64_t>& symbols) {
  Shape result;
  for (const Dim& d : shape) result.push_back(d.evaluate(symbols).value());
  return result;
}
ir::Type evaluate(ir::Type type, const std::map<std::string, int64_t>& symbols) {
  type.shape = evaluate(type.shape, symbols);
  return type;
}

/// Bytes of a tensor in its layout; padding holds garbage (NaN, -1) that must not reach results.
std::vector<uint8_t> encode(const std::vector<double>& values, const ir::Type& type) {
  const size_t size = static_cast<size_t>(size_of(type.dtype));
  std::vector<uint8_t> plain(values.size() * size), ones(values.size() * size, 1);
  for (size_t i = 0; i < values.size(); ++i)
    std::memcpy(plain.data() + i * size, ir::Tensor::scalar(type.dtype, values[i]).raw(), size);
  if (type.layout.is_plain()) return plain;
  ir::Type flat = type;
  flat.layout = {};
  const ir::Tensor placed = ops::reorder(ir::Tensor::from_bytes(flat, plain), type.layout);
  const ir::Tensor used = ops::reorder(ir::Tensor::from_bytes(flat, ones), type.layout);
  std::vector<uint8_t> bytes(placed.raw(), placed.raw() + placed.bytes());
  for (size_t i = 0; i < bytes.size(); ++i)
    if (used.raw()[i] == 0) bytes[i] = type.dtype == DType::boolean ? 1 : 0xff;
  return bytes;
}

std::vector<double> decode(std::vector<uint8_t> bytes, const ir::Type& type) {
  const ir::Tensor plain = ops::reorder(ir::Tensor::from_bytes(type, std::move(bytes)), {});
  std::vector<double> values;
  const int64_t n = num_elements(type.shape).value();
  for (int64_t i = 0; i < n; ++i)
    values.push_back(is_float(type.dtype) ? plain.as_double(i) : static_cast<double>(plain.as_int(i)));
  return values;
}

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

TargetInfo target_of(int vector_bytes) {
  TargetInfo t;
  t.name = "test";
  t.vector_bytes = vector_bytes;
  return t;
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
      const int64_t n = num_elements(evaluate(c.inputs[i]->shape, c.symbols)).value();
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

Outcome interpret(const Case& c, int vector_bytes) {
  const BuiltCase built = build(c);
  for (const auto& [a, b] : ops::requirements(*built.node))
    if (a.evaluate(c.symbols) != b.evaluate(c.symbols)) throw_internal(c.name + ": a requirement does not hold");
  const TargetInfo target = target_of(vector_bytes);
  const kernel::Kernel kernel = ops::lower_reference(ops::Group::of(*built.node), target, "k");
  kernel::verify(kernel);

  std::vector<std::vector<uint8_t>> memory;
  const std::vector<std::vector<double>> values = input_values(c);
  for (size_t i = 0; i < c.inputs.size(); ++i)
    if (c.inputs[i]) memory.push_back(encode(values[i], evaluate(*c.inputs[i], c.symbols)));
  std::vector<ir::Type> types;
  for (const auto& out : built.node->outputs) {
    types.push_back(evaluate(out->type, c.symbols));
    memory.emplace_back(static_cast<size_t>(types.back().bytes().value()), uint8_t{0xcd});
  }
  std::vector<kernel::Argument> arguments;
  for (std::vector<uint8_t>& m : memory) arguments.push_back({m.data(), static_cast<int64_t>(m.size())});
  std::vector<int64_t> dims;
  for (const kernel::Var& d : kernel.dims) dims.push_back(c.symbols.at(d->name));

  Outcome outcome;
  outcome.code = kernel::interpret(kernel, arguments, dims);
  const size_t first = memory.size() - types.size();
  for (size_t i = 0; i < types.size(); ++i) outcome.outputs.push_back(decode(memory[first + i], types[i]));
  return outcome;
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
