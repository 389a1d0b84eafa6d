#include "core/ops/recurrent.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/ops/window.h"

namespace cuvil::ops {

using kernel::Expr;
namespace k = cuvil::kernel;

namespace {

struct ActivationDefault {
  std::string_view name;
  double alpha, beta;
};
/// ONNX's defaults.
constexpr ActivationDefault kActivations[] = {
    {"Relu", 0, 0},         {"Tanh", 0, 0},
    {"Sigmoid", 0, 0},      {"Affine", 1, 0},
    {"LeakyRelu", 0.01, 0}, {"ThresholdedRelu", 1, 0},
    {"ScaledTanh", 1, 1},   {"HardSigmoid", 0.2, 0.5},
    {"Elu", 1, 0},          {"Softsign", 0, 0},
    {"Softplus", 0, 0},
};

const ActivationDefault* find_activation(std::string_view name) {
  for (const ActivationDefault& a : kActivations)
    if (a.name == name) return &a;
  return nullptr;
}

int directions_of(const ir::Node& node) { return node.attr<std::string>("direction") == "bidirectional" ? 2 : 1; }

}  // namespace

Expr GateActivation::operator()(Expr x, double clip) const {
  const auto number = [&](double v) { return k::constant(x.type(), v); };
  const auto call = [&](k::Op op, Expr v) { return k::make(op, {std::move(v)}); };
  if (clip > 0) x = k::min(k::max(x, number(-clip)), number(clip));
  if (name == "Tanh") return call(k::Op::tanh, x);
  if (name == "Sigmoid") return call(k::Op::sigmoid, x);
  if (name == "Relu") return k::max(x, number(0));
  if (name == "Affine") return x * number(alpha) + number(beta);
  if (name == "LeakyRelu") return k::select(x >= number(0), x, x * number(alpha));
  if (name == "ThresholdedRelu") return k::select(x > number(alpha), x, number(0));
  if (name == "ScaledTanh") return call(k::Op::tanh, x * number(beta)) * number(alpha);
  if (name == "HardSigmoid") return k::min(k::max(x * number(alpha) + number(beta), number(0)), number(1));
  if (name == "Elu") return k::select(x >= number(0), x, (call(k::Op::exp, x) - number(1)) * number(alpha));
  if (name == "Softsign") return x / (call(k::Op::abs, x) + number(1));
  // log(1 + e^x) without overflow.
  return k::max(x, number(0)) + call(k::Op::log, call(k::Op::exp, -call(k::Op::abs, x)) + number(1));
}

std::vector<GateActivation> activations_of(const ir::Node& node) {
  const auto names = node.attr<std::vector<std::string>>("activations");
  const auto alphas = node.attr<std::vector<double>>("activation_alpha");
  const auto betas = node.attr<std::vector<double>>("activation_beta");
  std::vector<GateActivation> all;
  for (size_t i = 0; i < names.size(); ++i) {
    const ActivationDefault* known = find_activation(names[i]);
    CUVIL_CHECK(known, "unknown activation " + names[i]);
    all.push_back({names[i], i < alphas.size() ? alphas[i] : known->alpha, i < betas.size() ? betas[i] : known->beta});
  }
  return all;
}

OpDef recurrent(std::string_view name, std::string_view doc, int gates) {
  OpDef d;
  d.name = name;
  d.doc = doc;
  d.inputs = {{"x", "[T, B, D * G * H]: the input times its weights, plus biases, for all steps; G gates"},
              {"r", "[D, H, G * H]: weights of the state, transposed"},
              {"lengths", "i64 [B]: steps of each row of the batch; absent: all", true},
              {"initial_h", "[D, B, H]; absent: zeros", true}};
  d.outputs = {{"y", "[T, D, B, H]: h after every step; 0 behind a row's end"}, {"y_h", "[D, B, H]: the last h"}};
  d.attributes = {
      optional("direction", AttrKind::string, "forward, reverse or bidirectional (D = 2)", std::string("forward")),
      required("activations", AttrKind::strings, "of each gate, direction by direction"),
      optional("activation_alpha", AttrKind::reals, "of the first activations; others: ONNX's defaults",
               std::vector<double>()),
      optional("activation_beta", AttrKind::reals, "the same", std::vector<double>()),
      optional("clip", AttrKind::real, "inputs of activations are cut to [-clip, clip]; 0: they are not", 0.0)};
  d.traits = kPure;
  d.dtypes = real_dtypes();
  d.flops = [gates](const ir::Node& n) {
    const Shape& r = n.input(1)->type.shape;
    const Shape& y = n.output()->type.shape;
    return Dim(2 * gates) * num_elements(y) * r[1];
  };
  return d;
}

std::vector<ir::Type> infer_recurrent(const InferContext& c, int gates, int states, size_t activations) {
  need_rank(c, 0, 3);
  need_rank(c, 1, 3);
  same_dtype(c, 1);
  const auto direction = c.node.attr<std::string>("direction");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    c.fail("unknown direction '" + direction + "'");
  const int directions = directions_of(c.node);
  const Shape& x = c.in(0).shape;
  const Shape& r = c.in(1).shape;
  const Dim hidden = r[1];
  c.require_equal(r[0], directions, "directions of r");
  c.require_equal(r[2], Dim(gates) * hidden, "gates of r");
  c.require_equal(x[2], Dim(directions * gates) * hidden, "columns of x");
  const auto names = c.node.attr<std::vector<std::string>>("activations");
  if (names.size() != activations * static_cast<size_t>(directions))
    c.fail("needs " + std::to_string(activations * static_cast<size_t>(directions)) + " activations, not " +
           std::to_string(names.size()));
  for (const std::string& name : names)
    if (!find_activation(name)) c.fail("unknown activation '" + name + "'");
  if (c.has_in(2)) {
    need_dtype(c, 2, DType::i64);
    need_rank(c, 2, 1);
    c.require_equal(c.in(2).shape[0], x[1], "batch sizes");
  }
  const Shape state{directions, x[1], hidden};
  for (size_t i = 3; i < 3 + static_cast<size_t>(states); ++i) {
    if (!c.has_in(i)) continue;
    same_dtype(c, i);
    need_rank(c, i, 3);
    for (size_t a = 0; a < 3; ++a) c.require_equal(c.in(i).shape[a], state[a], "sizes of an initial state");
  }
  const DType t = c.in(0).dtype;
  std::vector<ir::Type> types{{t, {x[0], directions, x[1], hidden}, {}}};
  for (int i = 0; i < states; ++i) types.push_back({t, state, {}});
  return types;
}

RecurrentRows::RecurrentRows(LowerContext& c, const RecurrentInputs& inputs, Expr direction, Expr first, int rows)
    : c_(c),
      inputs_(inputs),
      type_{accumulator_type(c.in_type(0).dtype), 1},
      direction_(std::move(direction)),
      first_(std::move(first)),
      steps_(c.dim(c.in_type(0).shape[0])),
      hidden_(c.dim(c.in_type(1).shape[1])),
      rows_(rows),
      lanes_(fitting_lanes(c.in_type(1).shape[1], c.lanes())),
      h_(state("h", inputs.initial_h)),
      next_(room("next")) {}

RecurrentRows::State RecurrentRows::room(const std::string& name) {
  return c_.b().alloc(name, type_, {Expr(rows_), hidden_}, k::Space::scratch);
}

RecurrentRows::State RecurrentRows::state(const std::string& name, size_t input) {
  const State s = room(name);
  for_each_unit([&](Expr j, Expr mask) {
    for (int i = 0; i < rows_; ++i) {
      Expr start = k::constant(type_, 0);
      if (c_.has_in(input))
        start = k::cast(type_, c_.load(input, Coords{{direction_, row(i), j}, lanes_ > 1 ? 2 : -1, lanes_, mask, {}}));
      set(s, i, j, mask, start);
    }
  });
  return s;
}

void RecurrentRows::for_each_unit(const std::function<void(Expr, Expr)>& body) {
  vector_loop(c_.b(), "j", Expr(0), hidden_, lanes_, body);
}

Expr RecurrentRows::get(const State& state, int row, Expr j, Expr mask) {
  return k::load(state, {Expr(row), std::move(j)}, lanes_, std::move(mask));
}

void RecurrentRows::set(const State& state, int row, Expr j, Expr mask, Expr value) {
  if (value.type().lanes != lanes_) value = k::broadcast(value, lanes_);
  c_.b().store(state, {Expr(row), std::move(j)}, std::move(value), std::move(mask));
}

void RecurrentRows::update(const State& state, int row, Expr j, Expr mask, Expr value) {
  if (const Expr& on = active_[static_cast<size_t>(row)]) value = k::select(on, value, get(state, row, j, mask));
  set(state, row, std::move(j), std::move(mask), std::move(value));
}

Expr RecurrentRows::x(int row, int gate, Expr j, Expr mask) {
  const Expr column = (direction_ * Expr(inputs_.gates) + Expr(gate)) * hidden_ + j;
  const Coords at{{time_[static_cast<size_t>(row)], this->row(row), column}, lanes_ > 1 ? 2 : -1, lanes_, mask, {}};
  return k::cast(type_, c_.load(0, at));
}

Expr RecurrentRows::weight(size_t input, Expr offset, Expr j, Expr mask) {
  return k::cast(type_,
                 c_.load(input, Coords{{direction_, offset + j}, lanes_ > 1 ? 1 : -1, lanes_, std::move(mask), {}}));
}

void RecurrentRows::for_each_unit(const State& from, int begin, int count,
                                  const std::function<void(Expr, Expr, const Sums&)>& body) {
  // As many vectors as divide the units and leave registers for all sums.
  const int registers = c_.target().vector_bytes >= 64 ? 20 : 10;
  const std::optional<int64_t> known = c_.in_type(1).shape[1].as_const();
  int vectors = 1;
  for (int v = 2; v <= 4; ++v)
    if (known && *known % (v * lanes_) == 0 && v * rows_ * count <= registers) vectors = v;
  const auto block = [&](const Expr& j, const Expr& mask) {
    const std::vector<Sums> sums = products(from, begin, count, vectors, j, mask);
    for (int v = 0; v < vectors; ++v) body(j + Expr(v * lanes_), mask, sums[static_cast<size_t>(v)]);
  };
  if (vectors == 1) return for_each_unit(block);
  c_.b().loop("j", Expr(0), hidden_, k::LoopKind::serial, [&](Expr j) { block(j, {}); }, vectors * lanes_);
}

std::vector<RecurrentRows::Sums> RecurrentRows::products(const State& from, int begin, int count, int vectors, Expr j,
                                                         Expr mask) {
  std::vector<Register> sums;  // [vector][row][gate]
  for (int i = 0; i < vectors * rows_ * count; ++i)
    sums.emplace_back(c_.b(), "sum", k::broadcast(k::constant(type_, 0), lanes_));
  const auto sum = [&](int v, int row, int gate) -> Register& {
    return sums[static_cast<size_t>((v * rows_ + row) * count + gate)];
  };
  c_.b().loop("k", hidden_, [&](Expr step) {
    std::vector<Expr> scale;
    for (int i = 0; i < rows_; ++i)
      scale.push_back(k::broadcast(c_.b().let("s", k::load(from, {Expr(i), step}, 1)), lanes_));
    for (int g = 0; g < count; ++g)
      for (int v = 0; v < vectors; ++v) {
        const Expr column = Expr(begin + g) * hidden_ + j + Expr(v * lanes_);
        const Coords at{{direction_, step, column}, lanes_ > 1 ? 2 : -1, lanes_, mask, {}};
        const Expr w = c_.b().let("w", k::cast(type_, c_.load(1, at)));
        for (int i = 0; i < rows_; ++i)
          sum(v, i, g).set(multiply_add(scale[static_cast<size_t>(i)], w, sum(v, i, g).get()));
      }
  });
  std::vector<Sums> values(static_cast<size_t>(vectors));
  for (int v = 0; v < vectors; ++v)
    for (int i = 0; i < rows_; ++i) {
      values[static_cast<size_t>(v)].emplace_back();
      for (int g = 0; g < count; ++g)
        values[static_cast<size_t>(v)].back().push_back(c_.b().let("p", sum(v, i, g).get()));
    }
  return values;
}

Expr RecurrentRows::activate(const std::vector<GateActivation>& all, size_t index, size_t count, const Expr& value,
                             double clip) const {
  const Expr first = all[index](value, clip);
  if (all.size() == count || all[index] == all[index + count]) return first;
  return k::select(direction_ == Expr(1), all[index + count](value, clip), first);
}

void RecurrentRows::for_each_step(const std::function<void()>& body) {
  const auto way = c_.node().attr<std::string>("direction");
  // A direction's number is 0 or 1: bidirectional goes forward, then backward.
  const auto at_step = [&](const Expr& step, const Expr& length) {
    const Expr backward = length - Expr(1) - step;
    if (way == "forward") return step;
    return way == "reverse" ? backward : k::select(direction_ == Expr(1), backward, step);
  };
  c_.b().loop("t", steps_, [&](Expr step) {
    time_.clear();
    active_.clear();
    for (int i = 0; i < rows_; ++i) {
      Expr time = at_step(step, steps_), on;
      if (c_.has_in(inputs_.lengths)) {
        const Expr length = c_.b().let("length", k::min(k::max(c_.load(inputs_.lengths, {row(i)}), Expr(0)), steps_));
        on = c_.b().let("on", step < length);
        time = k::select(on, at_step(step, length), step);
      }
      time_.push_back(c_.b().let("time", time));
      active_.push_back(on);
    }
    body();
    for_each_unit([&](Expr j, Expr mask) {
      for (int i = 0; i < rows_; ++i) {
        const Expr on = active_[static_cast<size_t>(i)];
        const Expr value = c_.b().let("value", get(next_, i, j, mask));
        update(h_, i, j, mask, value);
        const Coords at{{time_[static_cast<size_t>(i)], direction_, row(i), j}, lanes_ > 1 ? 3 : -1, lanes_, mask, {}};
        c_.store(at, on ? k::select(on, value, k::constant(value.type(), 0)) : value);
      }
    });
  });
}

void RecurrentRows::finish(size_t output, const State& state) {
  for_each_unit([&](Expr j, Expr mask) {
    for (int i = 0; i < rows_; ++i)
      c_.store(Coords{{direction_, row(i), j}, lanes_ > 1 ? 2 : -1, lanes_, mask, {}}, get(state, i, j, mask), output);
  });
}

void for_each_recurrent_task(LowerContext& c, const RecurrentInputs& inputs,
                             const std::function<void(RecurrentRows&)>& body) {
  const Dim batch = c.in_type(0).shape[1];
  // Rows share what is loaded of r; more of them than this run out of registers.
  int block = c.target().vector_bytes >= 64 ? 4 : 2;
  if (batch.is_const()) block = static_cast<int>(std::clamp<int64_t>(batch.value(), 1, block));
  const Dim blocks = ceildiv(batch, block);
  const Expr per_direction = c.dim(blocks), rows = c.dim(batch);
  c.b().phase(c.dim(Dim(directions_of(c.node())) * blocks), [&](Expr task) {
    const Expr direction = c.b().let("direction", k::floordiv(task, per_direction));
    const Expr first = c.b().let("first", task % per_direction * Expr(block));
    const auto whole = [&] {
      RecurrentRows all(c, inputs, direction, first, block);
      body(all);
    };
    if (block == 1 || batch.divisible_by(block)) return whole();
    c.b().branch(first + Expr(block) <= rows, whole, [&] {
      c.b().loop("row", first, rows, k::LoopKind::serial, [&](Expr row) {
        RecurrentRows one(c, inputs, direction, row, 1);
        body(one);
      });
    });
  });
}

}  // namespace cuvil::ops
