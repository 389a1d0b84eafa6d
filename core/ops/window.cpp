#include "core/ops/window.h"

namespace cuvil::ops {

using kernel::Expr;

std::vector<AttrSpec> window_attributes() {
  return {optional("strides", AttrKind::integers, "[s_h, s_w]", Ints{1, 1}),
          optional("dilations", AttrKind::integers, "[d_h, d_w]", Ints{1, 1}),
          optional("pads", AttrKind::integers, "[top, left, bottom, right]", Ints{0, 0, 0, 0})};
}

Window Window::of(const ir::Node& node, Ints kernel) {
  return {std::move(kernel), node.attr<Ints>("strides"), node.attr<Ints>("dilations"), node.attr<Ints>("pads")};
}

Window window_of(const InferContext& c, Ints kernel) {
  Window w = Window::of(c.node, std::move(kernel));
  if (w.kernel.size() != 2 || w.strides.size() != 2 || w.dilations.size() != 2 || w.pads.size() != 4)
    c.fail("kernel, strides and dilations need two numbers, pads four");
  for (size_t d = 0; d < 2; ++d)
    if (w.kernel[d] < 1 || w.strides[d] < 1 || w.dilations[d] < 1) c.fail("kernel, strides and dilations are positive");
  for (int64_t p : w.pads)
    if (p < 0) c.fail("pads must not be negative");
  return w;
}

Dim Window::out_size(const InferContext& c, const Dim& in, int d, bool ceil) const {
  const size_t i = static_cast<size_t>(d);
  const Dim span = in + Dim(pads[i] + pads[i + 2] - extent(d));
  if (span.is_const() && span.value() < 0) c.fail("the window is larger than the padded image");
  const Dim stride = strides[i];
  if (!ceil) return floordiv(span, stride) + Dim(1);
  const Dim size = ceildiv(span, stride) + Dim(1);
  // The last window must begin inside the image or its front padding.
  return min(size, floordiv(in + Dim(pads[i] - 1), stride) + Dim(1));
}

bool Window::padded() const { return pads[0] || pads[1] || pads[2] || pads[3]; }

void Window::for_each_tap(LowerContext& c, const Coords& at, const Dim& h, const Dim& w,
                          const std::function<void(const Coords&, Expr, Expr)>& body, bool overhang) const {
  c.b().loop("ky", Expr(kernel[0]), [&](Expr ky) {
    c.b().loop("kx", Expr(kernel[1]), [&](Expr kx) {
      Coords tap = at.moved(2, Expr(strides[0]), ky * Expr(dilations[0]) - Expr(pads[0]));
      tap = tap.moved(3, Expr(strides[1]), kx * Expr(dilations[1]) - Expr(pads[1]));
      if (padded() || overhang) {
        const Expr y = tap.at(2), x = tap.at(3);
        tap = tap.only((y >= Expr(0)) & (y < c.dim(h))).only((x >= Expr(0)) & (x < c.dim(w)));
      }
      body(tap, ky, kx);
    });
  });
}

void check_conv(const InferContext& c) {
  need_rank(c, 0, 4);
  need_rank(c, 1, 4);
  same_dtype(c, 1);
  if (!is_static(c.in(1).shape)) c.fail("the weight's sizes must be known");
  if (c.node.attr<int64_t>("groups") < 1) c.fail("groups must be positive");
}

void check_bias(const InferContext& c, const Dim& channels) {
  if (!c.has_in(2)) return;
  same_dtype(c, 2);
  if (c.in(2).shape != Shape{channels}) c.fail("the bias must have one value per output channel");
}

Expr bias_at(LowerContext& c, const Coords& at) {
  const kernel::Type type{accumulator_type(c.in_type(0).dtype), 1};
  if (c.has_in(2)) return kernel::cast(type, c.load(2, channel_coords(at)));
  return kernel::broadcast(kernel::constant(type, 0), at.lanes);
}

Coords channel_coords(const Coords& at) {
  Coords c = at;
  c.index = {at.index[1]};
  c.axis = at.axis == 1 ? 0 : -1;
  return c;
}

DType accumulator_type(DType t) { return t == DType::f16 || t == DType::bf16 ? DType::f32 : t; }

Expr multiply_add(const Expr& a, const Expr& b, const Expr& c) {
  return is_float(c.type().dtype) ? kernel::fma(a, b, c) : a * b + c;
}

}  // namespace cuvil::ops
