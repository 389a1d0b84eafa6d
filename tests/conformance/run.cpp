#include "tests/conformance/run.h"

#include <cstring>

#include "core/base/error.h"
#include "core/kernel/verify.h"
#include "core/ops/lower.h"
#include "core/ops/reorder.h"

namespace cuvil::conformance {

ir::Type evaluate(ir::Type type, const Symbols& symbols) {
  for (Dim& d : type.shape) d = d.evaluate(symbols).value();
  return type;
}

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

std::vector<double> decode(const std::vector<uint8_t>& bytes, const ir::Type& type) {
  const ir::Tensor plain = ops::reorder(ir::Tensor::from_bytes(type, bytes), {});
  std::vector<double> values;
  const int64_t n = num_elements(type.shape).value();
  for (int64_t i = 0; i < n; ++i)
    values.push_back(is_float(type.dtype) ? plain.as_double(i) : static_cast<double>(plain.as_int(i)));
  return values;
}

TargetInfo target_of(int vector_bytes) {
  TargetInfo t;
  t.name = "test";
  t.vector_bytes = vector_bytes;
  return t;
}

kernel::Kernel kernel_of(const ir::Node& node, const TargetInfo& target, std::string name) {
  kernel::Kernel k = ops::lower_reference(ops::Group::of(node), target, std::move(name));
  kernel::verify(k);
  return k;
}

std::vector<int64_t> dims_of(const kernel::Kernel& kernel, const Symbols& symbols) {
  std::vector<int64_t> dims;
  for (const kernel::Var& d : kernel.dims) dims.push_back(symbols.at(d->name));
  return dims;
}

int32_t run_kernel(const kernel::Kernel& kernel, const ir::Node& node, Memory& memory, const Symbols& symbols,
                   const Runner& runner) {
  std::vector<kernel::Argument> arguments;
  const auto pass = [&](std::vector<uint8_t>& bytes) {
    arguments.push_back({bytes.data(), static_cast<int64_t>(bytes.size())});
  };
  for (const ir::Value* v : node.inputs())
    if (v) pass(memory.at(v));
  for (const auto& out : node.outputs) {
    const int64_t bytes = evaluate(out->type, symbols).bytes().value();
    memory[out.get()].assign(static_cast<size_t>(bytes), 0xcd);
    pass(memory[out.get()]);
  }
  return runner(kernel, arguments, dims_of(kernel, symbols));
}

int32_t run_node(const ir::Node& node, Memory& memory, const Symbols& symbols, const TargetInfo& target,
                 const Runner& runner) {
  return run_kernel(kernel_of(node, target), node, memory, symbols, runner);
}

std::vector<std::vector<double>> run_graph(const ir::Graph& graph, const std::vector<std::vector<double>>& inputs,
                                           const Symbols& symbols, int vector_bytes) {
  Memory memory;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ir::Value* v = graph.body.params[i].get();
    memory[v] = encode(inputs[i], evaluate(v->type, symbols));
  }
  for (const auto& node : graph.body.nodes) {
    if (const ir::Tensor* t = ir::constant_of(node->output())) {
      memory[node->output()].assign(t->raw(), t->raw() + t->bytes());
      continue;
    }
    const int32_t code = run_node(*node, memory, symbols, target_of(vector_bytes), kernel::interpret);
    CUVIL_CHECK(code == 0, node->op + " fails");
  }
  std::vector<std::vector<double>> results;
  for (const ir::Value* v : graph.body.results) results.push_back(decode(memory.at(v), evaluate(v->type, symbols)));
  return results;
}

}  // namespace cuvil::conformance
