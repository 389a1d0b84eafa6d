// LSTM, GRU and RNN: the input times its weights for all steps and directions at once is a MatMul; an operator of the
// same name does the rest.
#include <algorithm>

#include "core/frontends/onnx/context.h"

namespace cuvil::frontends::onnx {
namespace {

using Ints = std::vector<int64_t>;

ir::Value* reshape(OpContext& c, ir::Value* x, Shape shape, std::string_view name = "") {
  return x->type.shape == shape ? x : c.b.add("Reshape", {x}, {{"shape", std::move(shape)}}, name);
}
ir::Value* transpose(OpContext& c, ir::Value* x, Ints perm, std::string_view name = "") {
  return c.b.add("Transpose", {x}, {{"perm", std::move(perm)}}, name);
}
ir::Value* columns(OpContext& c, ir::Value* x, int64_t begin, int64_t end) {
  return c.b.add("Slice", {x},
                 {{"begin", Shape{0, begin}}, {"size", Shape{x->type.shape[0], end - begin}}, {"step", Ints{1, 1}}});
}

/// The names ONNX knows, of which some take an alpha, or an alpha and a beta, with their defaults.
struct KnownActivation {
  std::string_view name;
  int arguments;
  double alpha, beta;
};
constexpr KnownActivation kKnown[] = {
    {"Relu", 0, 0, 0},
    {"Tanh", 0, 0, 0},
    {"Sigmoid", 0, 0, 0},
    {"Softsign", 0, 0, 0},
    {"Softplus", 0, 0, 0},
    {"LeakyRelu", 1, 0.01, 0},
    {"Elu", 1, 1, 0},
    {"ThresholdedRelu", 1, 1, 0},
    {"Affine", 2, 1, 0},
    {"ScaledTanh", 2, 1, 1},
    {"HardSigmoid", 2, 0.2, 0.5},
};

/// Names are spelled in any case; alphas and betas are consumed by those that take one.
ir::Attributes activations(OpContext& c, std::vector<std::string> fallback, int64_t directions) {
  std::vector<std::string> names;
  const ProtoAttribute* given = c.attribute("activations");
  if (given)
    names.assign(given->strings.begin(), given->strings.end());
  else
    for (int64_t d = 0; d < directions; ++d) names.insert(names.end(), fallback.begin(), fallback.end());
  const std::vector<double> alphas = c.attr_floats("activation_alpha", {}),
                            betas = c.attr_floats("activation_beta", {});
  std::vector<double> alpha, beta;
  size_t next_alpha = 0, next_beta = 0;
  for (std::string& name : names) {
    const auto same = [&](std::string_view other) {
      return std::equal(name.begin(), name.end(), other.begin(), other.end(),
                        [](char a, char b) { return std::tolower(a) == std::tolower(b); });
    };
    const auto* known = std::find_if(std::begin(kKnown), std::end(kKnown), [&](const auto& k) { return same(k.name); });
    if (known == std::end(kKnown)) c.unsupported(std::string(c.proto.op_type) + " with activation " + name);
    name = known->name;
    alpha.push_back(known->arguments > 0 && next_alpha < alphas.size() ? alphas[next_alpha++] : known->alpha);
    beta.push_back(known->arguments > 1 && next_beta < betas.size() ? betas[next_beta++] : known->beta);
  }
  return {{"activations", names}, {"activation_alpha", alpha}, {"activation_beta", beta}};
}

/// Inputs X, W, R, B, sequence_lens, initial_h; LSTM besides initial_c and P. W and R are [D, gates * H, ...].
void recurrent(OpContext& c, int64_t gates, std::vector<std::string> usual) {
  const std::string_view op = c.proto.op_type;
  const bool batch_first = c.attr_int("layout", 0) != 0;
  const bool lstm = op == "LSTM";
  if (c.rank(0) != 3 || c.rank(1) != 3 || c.rank(2) != 3) c.malformed(std::string(op) + ": X, W and R have three axes");
  ir::Value* x = c.in(0);
  if (batch_first) x = transpose(c, x, {1, 0, 2});
  const Shape& w = c.type(1).shape;
  const Shape& r = c.type(2).shape;
  if (!is_static(w) || !is_static(r)) c.unsupported(std::string(op) + " with weights of symbolic sizes");
  const int64_t directions = w[0].value(), hidden = r[2].value();
  const std::string direction = c.attr_string("direction", "forward");
  if (directions != (direction == "bidirectional" ? 2 : 1) || r[0] != w[0] || w[1] != Dim(gates * hidden) ||
      r[1] != w[1])
    c.malformed(std::string(op) + ": W " + to_string(w) + " and R " + to_string(r) + " do not fit " +
                std::to_string(gates) + " gates and direction '" + direction + "'");
  if (c.attr_int("hidden_size", hidden) != hidden) c.malformed(std::string(op) + ": hidden_size differs from R's");

  ir::Value* projected =
      c.b.add("MatMul", {x, reshape(c, c.in(1), {directions * gates * hidden, w[2]})}, {{"transpose_b", int64_t{1}}});
  const bool linear = op == "GRU" && c.attr_int("linear_before_reset", 0) != 0;
  ir::Value* bias_h = nullptr;
  if (c.has(3)) {
    const int64_t n = gates * hidden;
    if (c.type(3).shape != Shape{directions, 2 * n}) c.malformed(std::string(op) + ": B must be [D, 2 * gates * H]");
    ir::Value* of_input = columns(c, c.in(3), 0, n);
    ir::Value* of_state = columns(c, c.in(3), n, 2 * n);
    if (linear) {  // the last gate's is added before the reset
      bias_h = columns(c, of_state, 2 * hidden, n);
      ir::Value* zeros = c.b.constant(ir::Tensor::scalar(c.type(3).dtype, 0));
      zeros = c.b.add("Expand", {zeros}, {{"shape", Shape{directions, hidden}}});
      of_state = c.b.add("Concat", {columns(c, of_state, 0, 2 * hidden), zeros}, {{"axis", int64_t{1}}});
    }
    ir::Value* bias = reshape(c, c.b.add("Add", {of_input, of_state}), {directions * n});
    projected = c.b.add("Add", {projected, bias});
  }

  ir::Value* lengths = c.in_or_null(4);
  if (lengths && lengths->type.dtype != DType::i64) lengths = c.b.add("Cast", {lengths}, {{"to", DType::i64}});
  const auto state = [&](size_t i) {
    ir::Value* v = c.in_or_null(i);
    return v && batch_first ? transpose(c, v, {1, 0, 2}) : v;
  };
  std::vector<ir::Value*> inputs{projected, transpose(c, c.in(2), {0, 2, 1}), lengths, state(5)};
  ir::Attributes attributes = activations(c, std::move(usual), directions);
  attributes["direction"] = direction;
  attributes["clip"] = c.attr_float("clip", 0);
  if (lstm) {
    inputs.push_back(state(6));
    inputs.push_back(c.in_or_null(7));
    attributes["input_forget"] = c.attr_int("input_forget", 0);
  } else if (op == "GRU") {
    inputs.push_back(bias_h);
    attributes["linear_before_reset"] = int64_t{linear};
  }
  while (!inputs.back()) inputs.pop_back();
  const ir::Node* node = c.b.add_node(op, std::move(inputs), std::move(attributes), batch_first ? "" : c.out_name());
  for (size_t i = 0; i < node->outputs.size(); ++i) {
    if (!c.wants(i)) continue;
    ir::Value* v = node->output(i);
    if (batch_first) v = transpose(c, v, i == 0 ? Ints{2, 0, 1, 3} : Ints{1, 0, 2}, c.out_name(i));
    c.out(i, v);
  }
}

void lstm(OpContext& c) { recurrent(c, 4, {"Sigmoid", "Tanh", "Tanh"}); }
void gru(OpContext& c) { recurrent(c, 3, {"Sigmoid", "Tanh"}); }
void rnn(OpContext& c) { recurrent(c, 1, {"Tanh"}); }

const Mapping kMappings[] = {{"LSTM", lstm}, {"GRU", gru}, {"RNN", rnn}};

}  // namespace

std::span<const Mapping> recurrent_mappings() { return kMappings; }

}  // namespace cuvil::frontends::onnx
