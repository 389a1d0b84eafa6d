#include <algorithm>

#include "core/ops/builder.h"
#include "core/passes/match.h"
#include "core/passes/pass.h"
#include "core/passes/rewrite.h"

namespace cuvil::passes {
namespace {

struct NormMatch {
  ir::Value* x = nullptr;
  int axis = 0;  ///< first normalised axis
  double epsilon = 0;
};

/// The first of the axes if the node averages over trailing axes and keeps them with extent 1, else -1.
int mean_axis(const ir::Node* mean) {
  if (!mean || mean->attr<int64_t>("keepdims") == 0) return -1;
  const int rank = mean->input(0)->type.rank();
  std::vector<int64_t> axes = mean->attr<std::vector<int64_t>>("axes");
  for (int64_t& a : axes) a = a < 0 ? a + rank : a;
  std::sort(axes.begin(), axes.end());
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != rank - static_cast<int>(axes.size() - i)) return -1;
  return axes.empty() ? -1 : static_cast<int>(axes[0]);
}

/// d = x - mean(x).
std::optional<NormMatch> match_centred(const ir::Value* d) {
  const ir::Node* sub = producer(d, "Sub");
  if (!sub) return std::nullopt;
  const ir::Node* mean = producer(sub->input(1), "ReduceMean");
  const int axis = mean_axis(mean);
  if (axis < 0 || mean->input(0) != sub->input(0)) return std::nullopt;
  return NormMatch{sub->input(0), axis, 0};
}

/// mean(d^2) + epsilon, over the same axes.
bool match_variance(const ir::Value* v, ir::Value* d, NormMatch& m) {
  const auto sum = sum_with_number(v);
  if (!sum || sum->second < 0) return false;
  const ir::Node* mean = producer(sum->first, "ReduceMean");
  if (mean_axis(mean) != m.axis) return false;
  Product square = product_of(mean->input(0));
  m.epsilon = sum->second;
  return square.factor == 1 && square.take(d) && square.take(d) && square.values.empty();
}

/// d / sqrt(variance), d * rsqrt(variance) or d * (1 / sqrt(variance)).
std::optional<NormMatch> match_normalised(const ir::Value* value) {
  const auto finish = [](ir::Value* d, const ir::Node* root) -> std::optional<NormMatch> {
    std::optional<NormMatch> m = match_centred(d);
    if (!m || !root || !match_variance(root->input(0), d, *m)) return std::nullopt;
    return m;
  };
  if (const ir::Node* div = producer(value, "Div")) return finish(div->input(0), producer(div->input(1), "Sqrt"));
  if (const ir::Node* mul = producer(value, "Mul")) {
    for (size_t i = 0; i < 2; ++i) {
      const ir::Value* factor = mul->input(1 - i);
      const ir::Node* root = producer(factor, "Rsqrt");
      if (const ir::Node* inverse = producer(factor, "Reciprocal")) root = producer(inverse->input(0), "Sqrt");
      if (auto m = finish(mul->input(i), root)) return m;
    }
  }
  return std::nullopt;
}

bool broadcasts_to(const Shape& small, const Shape& big) {
  if (small.size() > big.size()) return false;
  for (size_t i = 0; i < small.size(); ++i) {
    const Dim& d = small[i];
    if (d != big[i + big.size() - small.size()] && d.as_const() != 1) return false;
  }
  return true;
}

/// The one node that reads `value` if it is an `op`, and its other operand.
std::pair<ir::Node*, ir::Value*> follow(const ir::Value* value, std::string_view op,
                                        const std::set<const ir::Value*>& results) {
  if (!has_one_user(value, results) || value->users.size() != 1 || value->users[0]->outputs.size() != 1) return {};
  ir::Node* n = producer(value->users[0]->output(), op);
  if (!n || n->output()->type != value->type) return {};
  ir::Value* other = n->input(n->input(0) == value ? 1 : 0);
  return broadcasts_to(other->type.shape, value->type.shape) ? std::pair(n, other) : std::pair<ir::Node*, ir::Value*>();
}

}  // namespace

/// Exporters of ONNX before opset 17 spell layer normalization out; scale and shift behind it are taken in. Rounding
/// may change: not under strict numerics.
ir::Graph recognise_layer_norm(ir::Graph graph, const PassContext& context) {
  if (context.strict_numerics) return graph;
  const std::set<const ir::Value*> results = all_results(graph);
  bool changed = false;
  for (ir::Node* node : body_nodes(graph)) {
    if (node->outputs.size() != 1 || !is_float(node->output()->type.dtype)) continue;
    const std::optional<NormMatch> m = match_normalised(node->output());
    if (!m) continue;
    ir::Node* last = node;
    ir::Value *scale = nullptr, *shift = nullptr;
    if (auto [mul, factor] = follow(last->output(), "Mul", results); mul) {
      last = mul;
      scale = factor;
      if (auto [add, summand] = follow(last->output(), "Add", results); add) {
        last = add;
        shift = summand;
      }
    }
    ops::Builder builder(graph, last);
    builder.at(last->location);
    if (!scale) scale = builder.constant(ir::Tensor::scalar(m->x->type.dtype, 1));
    std::vector<ir::Value*> inputs{m->x, scale};
    if (shift) inputs.push_back(shift);
    ir::Value* norm = builder.add("LayerNormalization", std::move(inputs),
                                  {{"axis", static_cast<int64_t>(m->axis)}, {"epsilon", m->epsilon}});
    replace_by_new(graph, last->output(), norm);
    changed = true;
  }
  if (changed) erase_dead(graph);
  return graph;
}

}  // namespace cuvil::passes
