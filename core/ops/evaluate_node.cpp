#include "core/ops/evaluate_node.h"

#include <cstring>

#include "core/base/error.h"
#include "core/kernel/interpret.h"
#include "core/ops/lower.h"

namespace cuvil::ops {
namespace {

ir::Type with_values(ir::Type type, const std::map<std::string, int64_t>& symbols) {
  for (Dim& d : type.shape) {
    const std::optional<int64_t> v = d.evaluate(symbols);
    if (!v) throw_shape_error("a size of " + d.str() + " has no value");
    d = Dim(*v);
  }
  return type;
}

}  // namespace

bool can_evaluate(const ir::Node& node) {
  const OpDef& d = def(node);
  return d.expr || d.lower || d.is(kGroup);
}

std::vector<ir::Tensor> evaluate_node(const ir::Node& node, const std::vector<const ir::Tensor*>& inputs,
                                      const std::map<std::string, int64_t>& symbols, const TargetInfo& target) {
  const Group group = Group::of(node);
  const kernel::Kernel k = lower_reference(group, target, "evaluate");
  std::vector<std::pair<kernel::Var, int64_t>> named;
  std::vector<int64_t> dims;
  for (const kernel::Var& d : k.dims) {
    const auto it = symbols.find(d->name);
    CUVIL_CHECK(it != symbols.end(), "symbol " + d->name + " has no value");
    named.emplace_back(d, it->second);
    dims.push_back(it->second);
  }

  std::vector<kernel::Argument> arguments;
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    if (!node.input(i)) continue;
    CUVIL_CHECK(i < inputs.size() && inputs[i], "input " + std::to_string(i) + " of " + node.op + " has no tensor");
    arguments.push_back({const_cast<uint8_t*>(inputs[i]->raw()), inputs[i]->bytes()});
  }
  std::vector<ir::Tensor> outputs;
  for (const auto& v : node.outputs) {
    auto [tensor, data] = ir::Tensor::allocate(with_values(v->type, symbols));
    const int64_t bytes = tensor.bytes();
    std::memset(data, 0xff, static_cast<size_t>(bytes));
    arguments.push_back({data, bytes});
    outputs.push_back(std::move(tensor));
  }
  std::vector<std::vector<uint8_t>> work;  // what phases share
  for (size_t p = arguments.size(); p < k.params.size(); ++p) {
    int64_t bytes = size_of(k.params[p]->type.dtype);
    for (const kernel::Expr& e : k.params[p]->shape) bytes *= kernel::evaluate(e, named).value();
    work.emplace_back(static_cast<size_t>(bytes), uint8_t{0xff});
  }
  for (auto& w : work) arguments.push_back({w.data(), static_cast<int64_t>(w.size())});

  if (const int32_t code = kernel::interpret(k, arguments, dims))
    throw_shape_error(node.op + " refuses its values (code " + std::to_string(code) + ")", node.location);
  return outputs;
}

}  // namespace cuvil::ops
