// Steps of optimisers (ai.onnx.preview.training): elementwise arithmetic over lists of tensors.
#include "core/frontends/onnx/compose.h"

namespace cuvil::frontends::onnx {
namespace {

using V = Compose::V;

/// Inputs are R, T, then n tensors of each kind; so are outputs, without R and T.
class Step {
 public:
  Step(OpContext& c, size_t kinds) : c_(c), m_(c) {
    const size_t lists = c.num_inputs() < 2 ? 0 : c.num_inputs() - 2;
    if (lists == 0 || lists % kinds != 0)
      c.malformed(std::string(c.proto.op_type) + " takes R, T and lists of one length");
    count_ = lists / kinds;
  }

  const Compose& m() const { return m_; }
  size_t count() const { return count_; }
  V rate() { return c_.in(0); }
  /// T as a float of R's type.
  V time() { return m_.cast(c_.in(1), rate()->type.dtype); }
  V has_run() { return m_.op("Greater", {time(), m_.like(rate(), 0)}); }
  V in(size_t kind, size_t i) { return c_.in(2 + kind * count_ + i); }
  void out(size_t kind, size_t i, V v) { c_.out(kind * count_ + i, v); }
  double real(const char* name, double fallback = 0) { return c_.attr_float(name, fallback); }
  /// The gradient, with that of the norm.
  V gradient(size_t i) {
    V g = in(1, i);
    const double norm = real("norm_coefficient");
    return norm == 0 ? g : m_.add(m_.mul(in(0, i), norm), g);
  }

 private:
  OpContext& c_;
  Compose m_;
  size_t count_ = 0;
};

/// X' = X - r G / (sqrt(H') + epsilon), H' = H + G^2, r = R / (1 + T decay)
void adagrad(OpContext& c) {
  Step s(c, 3);
  const Compose& m = s.m();
  V rate = m.div(s.rate(), m.add(m.mul(s.time(), s.real("decay_factor")), m.like(s.rate(), 1)));
  for (size_t i = 0; i < s.count(); ++i) {
    V g = s.gradient(i), h = m.add(s.in(2, i), m.mul(g, g));
    V root = m.op("Sqrt", {h});
    V step = m.div(m.mul(m.cast(rate, g->type.dtype), g), m.add(root, m.like(root, s.real("epsilon", 1e-6))));
    s.out(0, i, m.sub(s.in(0, i), step));
    s.out(1, i, h);
  }
}

/// Kingma, Ba, Adam, 2014, with the corrections of bias in the rate.
void adam(OpContext& c) {
  Step s(c, 4);
  const Compose& m = s.m();
  const double alpha = s.real("alpha", 0.9), beta = s.real("beta", 0.999);
  V one = m.like(s.rate(), 1);
  const auto rest = [&](double base) { return m.sub(one, m.op("Pow", {m.like(one, base), s.time()})); };
  V adjusted = m.div(m.mul(s.rate(), m.op("Sqrt", {rest(beta)})), rest(alpha));
  V rate = m.where(s.has_run(), adjusted, s.rate());
  for (size_t i = 0; i < s.count(); ++i) {
    V g = s.gradient(i);
    V v = m.add(m.mul(s.in(2, i), alpha), m.mul(g, 1 - alpha));
    V h = m.add(m.mul(s.in(3, i), beta), m.mul(m.mul(g, g), 1 - beta));
    V root = m.op("Sqrt", {h});
    V step = m.div(m.mul(m.cast(rate, g->type.dtype), v), m.add(root, m.like(root, s.real("epsilon", 1e-6))));
    s.out(0, i, m.mul(m.sub(s.in(0, i), step), 1 - s.real("norm_coefficient_post")));
    s.out(1, i, v);
    s.out(2, i, h);
  }
}

/// X' = X - R V', V' = alpha V + beta G; nesterov: X' = X - R (G + alpha V'). In the first step beta is 1.
void momentum(OpContext& c) {
  Step s(c, 3);
  const Compose& m = s.m();
  const std::string mode = c.attr_string("mode", "");
  if (mode != "standard" && mode != "nesterov") c.malformed("Momentum: mode '" + mode + "' is not defined");
  V beta = m.where(s.has_run(), m.like(s.rate(), s.real("beta")), m.like(s.rate(), 1));
  for (size_t i = 0; i < s.count(); ++i) {
    V g = s.gradient(i);
    V v = m.add(m.mul(s.in(2, i), s.real("alpha")), m.mul(m.cast(beta, g->type.dtype), g));
    V direction = mode == "nesterov" ? m.add(g, m.mul(v, s.real("alpha"))) : v;
    s.out(0, i, m.sub(s.in(0, i), m.mul(m.cast(s.rate(), g->type.dtype), direction)));
    s.out(1, i, v);
  }
}

const Mapping kMappings[] = {
    {"ai.onnx.preview.training.Adagrad", adagrad},
    {"ai.onnx.preview.training.Adam", adam},
    {"ai.onnx.preview.training.Momentum", momentum},
};

}  // namespace

std::span<const Mapping> training_mappings() { return kMappings; }

}  // namespace cuvil::frontends::onnx
