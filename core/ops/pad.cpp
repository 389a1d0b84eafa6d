#include "core/ops/define.h"
#include "core/ops/loops.h"

namespace cuvil::ops {
namespace {

using kernel::Expr;

std::vector<ir::Type> infer_pad(const InferContext& c) {
  const Shape& x = c.in(0).shape;
  const Ints& pads = c.node.attr<Ints>("pads");
  const std::string& mode = c.node.attr<std::string>("mode");
  if (pads.size() != 2 * x.size()) c.fail("pads need two numbers per axis");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    c.fail("mode must be constant, reflect, edge or wrap");
  Shape out;
  for (size_t a = 0; a < x.size(); ++a) {
    const Dim size = x[a] + Dim(pads[a] + pads[a + x.size()]);
    if (size.is_const() && size.value() < 0) c.fail("pads take more than there is of axis " + std::to_string(a));
    if (mode != "constant" && x[a].as_const() == 0 && size.as_const() != 0)
      c.fail("axis " + std::to_string(a) + " has no element to repeat");
    out.push_back(size);
  }
  return {{c.in(0).dtype, out, {}}};
}

/// Index of the element that stands at position i, which may be outside of 0 .. n - 1.
Expr source(const std::string& mode, const Expr& i, const Expr& n) {
  if (mode == "edge") return kernel::max(Expr(0), kernel::min(i, n - Expr(1)));
  if (mode == "wrap") return i % n;
  // Mirrored without repeating the border: period 2 (n - 1).
  const Expr period = kernel::max(Expr(1), (n - Expr(1)) * Expr(2));
  const Expr p = i % period;
  return kernel::select(p < n, p, period - p);
}

void lower_pad(LowerContext& c) {
  const ir::Type& x = c.in_type(0);
  const Ints& pads = c.node().attr<Ints>("pads");
  const std::string& mode = c.node().attr<std::string>("mode");
  const bool blocked = !x.layout.blocks.empty();
  const double value = c.node().attr<double>("value");
  const std::vector<Expr> extents = c.extents(x.shape);
  for_each(c, c.out_memory().type(), {}, [&](const Coords& at) {
    Coords in = at;
    for (int a = 0; a < x.rank(); ++a) {
      const size_t i = static_cast<size_t>(a);
      const int64_t front = pads[i], back = pads[i + extents.size()];
      if (front == 0 && back == 0) continue;
      if (mode == "constant") {
        in = in.shifted(a, Expr(-front), blocked);
        const Expr p = in.at(a);
        in = in.only((p >= Expr(0)) & (p < extents[i]));
      } else {
        in = in.with(a, source(mode, at.at(a) - Expr(front), extents[i]));
      }
    }
    Expr y = c.load(0, in);
    if (mode == "constant" && value != 0)
      if (Expr on = in.predicate()) y = kernel::select(on, y, kernel::constant(y.type(), value));
    c.store(at, y);
  });
}

}  // namespace

OpDef define_pad() {
  OpDef d;
  d.name = "Pad";
  d.doc =
      "y is x with elements added around it (or, with negative pads, taken away): a constant, the mirrored inside "
      "without "
      "its border (reflect), the border (edge), or x repeated (wrap).";
  d.inputs = {{"x", "any shape"}};
  d.outputs = {{"y", "sizes plus pads"}};
  d.attributes = {required("pads", AttrKind::integers, "before every axis, then behind every axis"),
                  optional("mode", AttrKind::string, "constant, reflect, edge or wrap", std::string("constant")),
                  optional("value", AttrKind::real, "the constant", 0.0)};
  d.traits = kBlockable | kEpilogueOk | kPure;
  d.dtypes = all_dtypes();
  d.infer = infer_pad;
  d.lower = lower_pad;
  d.flops = [](const ir::Node&) { return Dim(0); };
  d.fold = [](ir::Graph&, ir::Node& node) -> ir::Value* {
    for (int64_t p : node.attr<Ints>("pads"))
      if (p != 0) return nullptr;
    return node.input(0)->type == node.output()->type ? node.input(0) : nullptr;
  };
  d.samples = [] {
    const auto by = [](Ints pads, std::string mode, double value = 0) {
      return ir::Attributes{{"pads", std::move(pads)}, {"mode", std::move(mode)}, {"value", value}};
    };
    return std::vector<Sample>{
        {"by_hand", {f32({2, 2})}, by({0, 1, 1, 0}, "constant", 9), {{1, 2, 3, 4}}, {9, 1, 2, 9, 3, 4, 9, 9, 9}},
        {"reflect", {f32({4})}, by({2, 3}, "reflect"), {{1, 2, 3, 4}}, {3, 2, 1, 2, 3, 4, 3, 2, 1}},
        {"edge", {f32({3})}, by({2, 1}, "edge"), {{1, 2, 3}}, {1, 1, 1, 2, 3, 3}},
        {"wrap", {f32({3})}, by({2, 4}, "wrap"), {{1, 2, 3}}, {2, 3, 1, 2, 3, 1, 2, 3, 1}},
        {"crop", {f32({5, 19})}, by({-1, 2, 0, -3}, "constant")},
        {"image", {f32({2, 20, 5, 7})}, by({0, 0, 1, 2, 0, 0, 2, 1}, "constant", -1)},
        {"image_edge", {f32({1, 20, 5, 7})}, by({0, 0, 1, 2, 0, 0, 2, 1}, "edge")},
        {"channels", {f32({1, 20, 3, 3})}, by({0, 3, 0, 0, 0, 12, 0, 0}, "constant")},
        {"integers", {i64({3})}, by({1, 1}, "constant", 5)},
        {"from_nothing", {f32({0, 3})}, by({2, 0, 0, 0}, "constant", 1)},
    };
  };
  return d;
}

}  // namespace cuvil::ops
