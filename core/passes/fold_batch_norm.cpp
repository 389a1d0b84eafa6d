#include <cmath>
#include <cstring>

#include "core/ops/builder.h"
#include "core/passes/match.h"
#include "core/passes/pass.h"
#include "core/passes/rewrite.h"

namespace cuvil::passes {
namespace {

/// A contraction with a constant weight, which may be scaled per output channel.
struct Rule {
  std::string_view op;
  int weight_axis;  ///< of the weight that counts output channels (within a group if `grouped`)
  int output_axis;  ///< negative: from the end
  bool grouped;     ///< the weight's first axis is split over groups, weight_axis counts channels of one
  int bias_input;   ///< -1: it has none
};
constexpr Rule kRules[] = {
    {"Conv2D", 0, 1, false, 2},
    {"ConvTranspose2D", 1, 1, true, 2},
    {"MatMul", 1, -1, false, -1},
};

/// A contraction and what its rule says about it.
struct Contraction {
  ir::Node* node = nullptr;
  const Rule* rule = nullptr;
  int output_axis = 0;
  int64_t channels = 0;
  ir::Tensor weight;
  size_t weight_axis = 0;
};

std::optional<Contraction> contraction_of(const ir::Value* value) {
  for (const Rule& rule : kRules) {
    ir::Node* node = producer(value, rule.op);
    if (!node) continue;
    Contraction c{node, &rule, rule.output_axis, 0, {}, static_cast<size_t>(rule.weight_axis)};
    const ir::Tensor* w = ir::constant_of(node->input(1));
    const ir::Type& out = node->output()->type;
    if (!w || w->type.dtype != DType::f32 || !w->type.layout.is_plain() || out.rank() < 2) return std::nullopt;
    if (c.output_axis < 0) {  // a matrix product
      if (w->type.rank() != 2 || node->input(0)->type.rank() < 2) return std::nullopt;
      c.output_axis += out.rank();
      if (node->attr<int64_t>("transpose_b") != 0) c.weight_axis = 0;
    }
    const std::optional<int64_t> channels = out.shape[static_cast<size_t>(c.output_axis)].as_const();
    if (!channels) return std::nullopt;
    c.channels = *channels;
    c.weight = *w;
    if (rule.bias_input >= 0)
      if (const ir::Value* bias = node->input(static_cast<size_t>(rule.bias_input)); bias && !ir::constant_of(bias))
        return std::nullopt;
    return c;
  }
  return std::nullopt;
}

/// One number per channel from a constant that broadcasts along everything else; nullopt for other constants.
std::optional<std::vector<double>> per_channel(const ir::Value* value, const ir::Type& out, int axis) {
  const ir::Tensor* t = ir::constant_of(value);
  if (!t || t->type.dtype != DType::f32 || !t->type.layout.is_plain() || t->type.rank() > out.rank())
    return std::nullopt;
  const int shift = out.rank() - t->type.rank();
  const int64_t channels = out.shape[static_cast<size_t>(axis)].value();
  int64_t count = 1;
  for (int a = 0; a < t->type.rank(); ++a) {
    const int64_t extent = t->type.shape[static_cast<size_t>(a)].value();
    if (extent == 1) continue;
    if (a + shift != axis || extent != channels) return std::nullopt;
    count = extent;
  }
  std::vector<double> values;
  for (int64_t i = 0; i < channels; ++i) values.push_back(t->as_double(count == 1 ? 0 : i));
  return values;
}

/// y = x * scale + shift, per channel.
struct Affine {
  std::vector<double> scale, shift;
};

std::optional<Affine> affine_of(const ir::Node& node, const ir::Value* x, int axis, int64_t channels) {
  const auto size = static_cast<size_t>(channels);
  Affine a{std::vector<double>(size, 1), std::vector<double>(size, 0)};
  const ir::Type& out = x->type;
  if (node.outputs.size() != 1 || node.output()->type != out) return std::nullopt;
  if (producer(node.output(), "BatchNormalization")) {
    std::vector<double> statistics[4];
    for (size_t i = 0; i < 4; ++i) {
      const ir::Tensor* t = ir::constant_of(node.input(i + 1));
      if (!t || t->type.dtype != DType::f32 || axis != 1) return std::nullopt;
      for (int64_t c = 0; c < channels; ++c) statistics[i].push_back(t->as_double(c));
    }
    const double epsilon = node.attr<double>("epsilon");
    for (size_t c = 0; c < size; ++c) {
      a.scale[c] = statistics[0][c] / std::sqrt(statistics[3][c] + epsilon);
      a.shift[c] = statistics[1][c] - statistics[2][c] * a.scale[c];
    }
    return a;
  }
  if (node.inputs().size() != 2 || node.input(0) == node.input(1)) return std::nullopt;
  const bool first = node.input(0) == x;
  const std::optional<std::vector<double>> c = per_channel(node.input(first ? 1 : 0), out, axis);
  if (!c) return std::nullopt;
  const bool add = producer(node.output(), "Add"), sub = producer(node.output(), "Sub"),
             mul = producer(node.output(), "Mul"), div = producer(node.output(), "Div");
  if (!add && !mul && !(first && (sub || div))) return std::nullopt;
  for (size_t i = 0; i < size; ++i) {
    if (mul) a.scale[i] = (*c)[i];
    if (div) a.scale[i] = 1 / (*c)[i];
    if (add) a.shift[i] = (*c)[i];
    if (sub) a.shift[i] = -(*c)[i];
  }
  return a;
}

/// A number that f32 cannot hold would spread: such constants stay where they are.
bool finite(const std::vector<double>& values) {
  for (double v : values)
    if (!std::isfinite(static_cast<float>(v))) return false;
  return true;
}

ir::Tensor scaled_weight(const Contraction& c, const std::vector<double>& scale) {
  auto [result, bytes] = ir::Tensor::allocate(c.weight.type);
  const Shape& shape = c.weight.type.shape;
  int64_t inner = 1;
  for (size_t a = c.weight_axis + 1; a < shape.size(); ++a) inner *= shape[a].value();
  const int64_t extent = shape[c.weight_axis].value(), count = result.bytes() / 4;
  const int64_t per_group = c.rule->grouped ? shape[0].value() / c.node->attr<int64_t>("groups") : 1;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t within = i / inner % extent;
    const int64_t group = c.rule->grouped ? i / (inner * extent) / per_group : 0;
    float v;
    std::memcpy(&v, c.weight.raw() + 4 * i, 4);
    v = static_cast<float>(v * scale[static_cast<size_t>(group * extent + within)]);
    std::memcpy(bytes + 4 * i, &v, 4);
  }
  return result;
}

std::vector<float> to_floats(const std::vector<double>& v) { return {v.begin(), v.end()}; }

bool all_are(const std::vector<double>& values, double wanted) {
  for (double v : values)
    if (v != wanted) return false;
  return true;
}

/// contraction(x, w, b) * scale + shift = contraction(x, w * scale, b * scale + shift). Returns the new value, or null
/// if nothing is gained.
ir::Value* fold_affine(ir::Graph& graph, const Contraction& c, const Affine& a) {
  const bool has_bias = c.rule->bias_input >= 0;
  if (!has_bias && all_are(a.scale, 1)) return nullptr;  // a shift alone is an epilogue already
  std::vector<double> bias(static_cast<size_t>(c.channels), 0);
  std::vector<ir::Value*> inputs{c.node->input(0), c.node->input(1)};
  if (has_bias) {
    if (const ir::Tensor* b = ir::constant_of(c.node->input(static_cast<size_t>(c.rule->bias_input))))
      for (size_t i = 0; i < bias.size(); ++i) bias[i] = b->as_double(static_cast<int64_t>(i));
  }
  for (size_t i = 0; i < bias.size(); ++i) bias[i] = bias[i] * a.scale[i] + a.shift[i];
  if (!finite(a.scale) || !finite(bias)) return nullptr;

  ops::Builder builder(graph, c.node);
  builder.at(c.node->location);
  if (!all_are(a.scale, 1)) inputs[1] = builder.constant(scaled_weight(c, a.scale), inputs[1]->name + "_scaled");
  const Dim channels(c.channels);
  const bool needs_bias = has_bias && (c.node->input(static_cast<size_t>(c.rule->bias_input)) || !all_are(bias, 0));
  if (needs_bias) inputs.push_back(builder.constant(ir::Tensor::from_floats({channels}, to_floats(bias))));
  ir::Value* y = builder.add(c.node->op, inputs, c.node->attributes);
  if (!has_bias && !all_are(bias, 0))
    y = builder.add("Add", {y, builder.constant(ir::Tensor::from_floats({channels}, to_floats(bias)))});
  return y;
}

/// Without a contraction in front of it: x * scale + shift, which fuses with its neighbours.
ir::Value* spell_out(ir::Graph& graph, ir::Node& node) {
  ir::Value* x = node.input(0);
  const std::optional<int64_t> channels = x->type.shape[1].as_const();
  const std::optional<Affine> a = channels ? affine_of(node, x, 1, *channels) : std::nullopt;
  if (!a || !finite(a->scale) || !finite(a->shift) || x->type.dtype != DType::f32) return nullptr;
  Shape shape(static_cast<size_t>(x->type.rank()), Dim(1));
  shape[1] = *channels;
  ops::Builder builder(graph, &node);
  builder.at(node.location);
  ir::Value* y = builder.add("Mul", {x, builder.constant(ir::Tensor::from_floats(shape, to_floats(a->scale)))});
  return builder.add("Add", {y, builder.constant(ir::Tensor::from_floats(shape, to_floats(a->shift)))});
}

}  // namespace

/// BatchNormalization, Mul, Div, Add and Sub by constants per channel, behind a convolution or matrix product with
/// constant weights that nobody else reads, go into weights and bias (computed in f64). Other BatchNormalizations
/// become Mul and Add. f32 only; rounding changes: not under strict numerics.
ir::Graph fold_batch_norm(ir::Graph graph, const PassContext& context) {
  if (context.strict_numerics) return graph;
  std::set<const ir::Value*> results = all_results(graph);
  bool changed = false;
  for (ir::Node* node : body_nodes(graph)) {
    if (node->inputs().empty() || node->outputs.size() != 1) continue;
    ir::Value* y = nullptr;
    for (size_t i = 0; i < node->inputs().size() && i < 2 && !y; ++i) {
      ir::Value* x = node->input(i);
      if (!x || !has_one_user(x, results)) continue;
      const std::optional<Contraction> c = contraction_of(x);
      if (!c) continue;
      const std::optional<Affine> a = affine_of(*node, x, c->output_axis, c->channels);
      if (a) y = fold_affine(graph, *c, *a);
    }
    if (!y && producer(node->output(), "BatchNormalization")) y = spell_out(graph, *node);
    if (!y) continue;
    if (results.count(node->output())) results.insert(y);
    replace_by_new(graph, node->output(), y);
    changed = true;
  }
  if (changed) erase_dead(graph);
  return graph;
}

}  // namespace cuvil::passes
