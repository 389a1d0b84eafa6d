#include "core/ops/builder.h"
#include "core/passes/match.h"
#include "core/passes/pass.h"
#include "core/passes/rewrite.h"

namespace cuvil::passes {
namespace {

constexpr double kSqrtHalf = 0.7071067811865476;
constexpr double kSqrtTwoOverPi = 0.7978845608028654;
constexpr double kCubic = 0.044715;

/// x + 0.044715 x^3, as a sum or as x * (1 + 0.044715 x^2), times `factor`.
bool is_cubic(const Product& inner, ir::Value* x, double factor) {
  if (!is_about(inner.factor, factor)) return false;
  if (inner.values.size() == 1) {
    const ir::Node* add = producer(inner.values[0], "Add");
    if (!add) return false;
    for (size_t i = 0; i < 2; ++i) {
      Product cube = product_of(add->input(1 - i));
      if (add->input(i) == x && is_about(cube.factor, kCubic) && cube.take(x) && cube.take(x) && cube.take(x) &&
          cube.values.empty())
        return true;
    }
    return false;
  }
  Product rest = inner;
  if (!rest.take(x) || rest.values.size() != 1) return false;
  const auto sum = sum_with_number(rest.values[0]);
  if (!sum || sum->second != 1) return false;
  Product square = product_of(sum->first);
  return is_about(square.factor, kCubic) && square.take(x) && square.take(x) && square.values.empty();
}

struct GeluMatch {
  ir::Value* x = nullptr;
  const char* approximate = "none";
};

/// x/2 * (1 + erf(x / sqrt 2)), or x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))).
std::optional<GeluMatch> match_gelu(ir::Node& root) {
  const Product all = product_of(root.output());
  if (all.values.size() != 2 || !is_about(all.factor, 0.5)) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    ir::Value* x = all.values[1 - i];
    const auto sum = sum_with_number(all.values[i]);
    if (!sum || sum->second != 1 || x->type != root.output()->type) continue;
    if (const ir::Node* erf = producer(sum->first, "Erf")) {
      Product inner = product_of(erf->input(0));
      if (is_about(inner.factor, kSqrtHalf) && inner.take(x) && inner.values.empty()) return GeluMatch{x, "none"};
    }
    if (const ir::Node* tanh = producer(sum->first, "Tanh"))
      if (is_cubic(product_of(tanh->input(0)), x, kSqrtTwoOverPi)) return GeluMatch{x, "tanh"};
  }
  return std::nullopt;
}

}  // namespace

/// Exporters of ONNX before opset 20 spell Gelu out. Rounding may change: not under strict numerics.
ir::Graph recognise_gelu(ir::Graph graph, const PassContext& context) {
  if (context.strict_numerics) return graph;
  bool changed = false;
  for (ir::Node* node : body_nodes(graph)) {
    if (!producer(node->outputs.empty() ? nullptr : node->output(), "Mul")) continue;
    const std::optional<GeluMatch> m = match_gelu(*node);
    if (!m) continue;
    ops::Builder builder(graph, node);
    builder.at(node->location);
    ir::Value* gelu = builder.add("Gelu", {m->x}, {{"approximate", std::string(m->approximate)}});
    replace_by_new(graph, node->output(), gelu);
    changed = true;
  }
  if (changed) erase_dead(graph);
  return graph;
}

}  // namespace cuvil::passes
