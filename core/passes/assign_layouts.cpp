#include <algorithm>
#include <map>

#include "core/ops/builder.h"
#include "core/ops/reorder.h"
#include "core/passes/pass.h"
#include "core/passes/rewrite.h"

namespace cuvil::passes {
namespace {

/// Convolutions of plain images with few channels have schedules of their own; a reorder would only add padding.
constexpr int64_t kFewChannels = 8;
constexpr int64_t kFewOutputs = 4;

class LayoutAssigner {
 public:
  LayoutAssigner(ir::Graph& graph, int lanes) : graph_(graph), layout_(ir::Layout::nchwc(4, lanes)), lanes_(lanes) {}

  /// Returns whether any tensor is blocked.
  bool run() {
    for (ir::Node* node : body_nodes(graph_)) visit(*node);
    for (ir::Value*& r : graph_.body.results) r = plain(r, nullptr);
    return any_;
  }

 private:
  bool is_blocked(const ir::Value* v) const { return v && v->type.layout == layout_; }
  static bool is_image(const ir::Value* v) { return v && v->type.rank() == 4 && v->type.shape[1].is_const(); }

  void visit(ir::Node& node) {
    const ops::OpDef& def = ops::def(node);
    if (def.is(ops::kConstant)) return;
    if (def.is(ops::kReorder)) {
      others_[node.input(0)] = node.output();
      others_[node.output()] = node.input(0);
      return;
    }
    if (def.is(ops::kImage) && def.is(ops::kContraction))
      contraction(node);
    else if (def.is(ops::kElementwise))
      elementwise(node);
    else if (def.is(ops::kConcat))
      concat(node);
    else if (def.is(ops::kBlockable))
      blockable(node, def);
    else
      all_plain(node);
  }

  void all_plain(ir::Node& node) {
    for (size_t i = 0; i < node.inputs().size(); ++i)
      if (is_blocked(node.input(i))) node.set_input(i, plain(node.input(i), &node));
  }

  void set_output(ir::Node& node) {
    node.output()->type.layout = layout_;
    any_ = true;
  }

  /// An ungrouped convolution of few channels; its weight is [output channels, input channels, ...].
  static bool reads_few_channels(const ir::Node& node) {
    const Dim &in = node.input(0)->type.shape[1], &out = node.output()->type.shape[1];
    const Shape& w = node.input(1)->type.shape;
    return in.value() <= kFewChannels && in != out && w.size() == 4 && w[0] == out && w[1] == in;
  }

  /// A transposed convolution to few channels; its weight is [input channels, output channels, ...]. Its schedule
  /// writes plain rows: blocks would be padding for the most part, and these are a network's largest images.
  static bool writes_few_channels(const ir::Node& node) {
    const Dim &in = node.input(0)->type.shape[1], &out = node.output()->type.shape[1];
    const Shape& w = node.input(1)->type.shape;
    return out.value() <= kFewOutputs && in != out && w.size() == 4 && w[0] == in && w[1] == out;
  }

  /// Convolutions are always worth it: outside of blocks of channels they have no fast loop nest.
  void contraction(ir::Node& node) {
    const bool possible = node.outputs.size() == 1 && is_image(node.output()) && is_image(node.input(0)) &&
                          node.output()->type.dtype == DType::f32;
    if (!possible) return all_plain(node);
    const bool direct = !is_blocked(node.input(0)) && reads_few_channels(node);
    for (size_t i = 1; i < node.inputs().size(); ++i)
      if (is_blocked(node.input(i))) node.set_input(i, plain(node.input(i), &node));
    if (!direct) node.set_input(0, blocked(node.input(0), &node));
    if (!writes_few_channels(node)) set_output(node);
  }

  /// Blocked if an operand of the result's shape is: the others follow, as far as they have channels.
  void elementwise(ir::Node& node) {
    const ir::Value* out = node.output();
    const bool joins = is_image(out) && std::any_of(node.inputs().begin(), node.inputs().end(), [&](ir::Value* v) {
                         return is_blocked(v) && v->type.shape == out->type.shape;
                       });
    if (!joins) return all_plain(node);
    const Dim& channels = out->type.shape[1];
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      ir::Value* v = node.input(i);
      if (!v) continue;
      if (v->type.rank() == 3 && v->type.shape[0] == channels && channels.as_const() != 1 && ir::constant_of(v)) {
        ir::Tensor t = *ir::constant_of(v);
        t.type.shape.insert(t.type.shape.begin(), Dim(1));
        ops::Builder builder(graph_, &node);
        builder.at(v->producer->location);
        v = builder.constant(t, v->name);
        node.set_input(i, v);
      }
      const bool has_channels = v->type.rank() == 4 && v->type.shape[1] == channels && channels.as_const() != 1;
      if (has_channels || v->type.shape == out->type.shape)
        node.set_input(i, blocked(v, &node));
      else if (is_blocked(v))
        node.set_input(i, plain(v, &node));
    }
    set_output(node);
  }

  /// In blocks only if every part fills its blocks, or lies along another axis.
  void concat(ir::Node& node) {
    int64_t axis = node.attr<int64_t>("axis");
    if (axis < 0) axis += node.output()->type.rank();
    bool possible = is_image(node.output()), any = false;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const ir::Value* v = node.input(i);
      const bool last = i + 1 == node.inputs().size();
      possible = possible && is_image(v) && (axis != 1 || last || v->type.shape[1].divisible_by(lanes_));
      any = any || is_blocked(v);
    }
    if (!possible || !any) return all_plain(node);
    for (size_t i = 0; i < node.inputs().size(); ++i) node.set_input(i, blocked(node.input(i), &node));
    set_output(node);
  }

  /// Pooling, resizing, padding, reductions of pixels: as their input is, unless they work across channels.
  void blockable(ir::Node& node, const ops::OpDef& def) {
    if (node.inputs().empty() || !is_blocked(node.input(0)) || across_channels(node)) return all_plain(node);
    const ir::Type& in = node.input(0)->type;
    const bool images = std::all_of(node.outputs.begin(), node.outputs.end(), [&](const auto& v) {
      return v->type.rank() == 4 && v->type.shape[1] == in.shape[1];
    });
    // A reduction to [N, C] walks blocks and writes a plain result.
    if (!images && !(def.is(ops::kReduction) && node.outputs.size() == 1 && node.output()->type.rank() < 4))
      return all_plain(node);
    for (size_t i = 1; i < node.inputs().size(); ++i)
      if (is_blocked(node.input(i))) node.set_input(i, plain(node.input(i), &node));
    if (!images) return;
    for (auto& v : node.outputs) v->type.layout = layout_;
    any_ = true;
  }

  static bool across_channels(const ir::Node& node) {
    const int64_t rank = node.input(0)->type.rank();
    const auto is_channel = [&](int64_t a) { return (a < 0 ? a + rank : a) == 1; };
    for (const char* name : {"axis", "axes"}) {
      const auto it = node.attributes.find(name);
      if (it == node.attributes.end()) continue;
      if (const auto* a = std::get_if<int64_t>(&it->second); a && is_channel(*a)) return true;
      if (const auto* all = std::get_if<std::vector<int64_t>>(&it->second))
        if (std::any_of(all->begin(), all->end(), is_channel)) return true;
    }
    return false;
  }

  /// The same tensor in the other layout; made where first needed, in front of `before`.
  ir::Value* blocked(ir::Value* v, ir::Node* before) { return is_blocked(v) ? v : other(v, layout_, before); }
  ir::Value* plain(ir::Value* v, ir::Node* before) { return is_blocked(v) ? other(v, {}, before) : v; }

  ir::Value* other(ir::Value* v, const ir::Layout& layout, ir::Node* before) {
    auto [it, fresh] = others_.try_emplace(v);
    if (!fresh) return it->second;
    ops::Builder builder(graph_, before);
    if (v->producer) builder.at(v->producer->location);
    if (const ir::Tensor* t = ir::constant_of(v))
      it->second = builder.constant(ops::reorder(*t, layout), v->name + "_blocked");
    else
      it->second =
          builder.add("Reorder", {v}, {{"layout", layout}}, v->name + (layout.is_plain() ? "_plain" : "_blocked"));
    ir::Value* made = it->second;
    others_[made] = v;
    return made;
  }

  ir::Graph& graph_;
  const ir::Layout layout_;
  const int lanes_;
  bool any_ = false;
  std::map<const ir::Value*, ir::Value*> others_;
};

}  // namespace

/// Images flow as NCHWc, c the target's vector width: from convolutions on through everything that works in blocks,
/// with Reorder nodes where plain and blocked meet, at most one per tensor and direction. Shapes stay logical; graph
/// inputs and outputs stay plain. Runs before fusion: a graph with fusion groups is left alone.
ir::Graph assign_layouts(ir::Graph graph, const PassContext& context) {
  const bool has_groups = std::any_of(graph.body.nodes.begin(), graph.body.nodes.end(),
                                      [](const auto& n) { return ops::def(*n).is(ops::kGroup); });
  if (has_groups) return graph;
  if (LayoutAssigner(graph, context.target.lanes_f32()).run()) erase_dead(graph);
  return graph;
}

}  // namespace cuvil::passes
