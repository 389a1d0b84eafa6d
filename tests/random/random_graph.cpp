#include "tests/random/random_graph.h"

#include <algorithm>

#include "core/ops/builder.h"
#include "tests/random/random_inputs.h"

namespace cuvil::test {
namespace {

using Ints = std::vector<int64_t>;

class Generator {
 public:
  Generator(uint64_t seed, const RandomGraphOptions& options) : random_(seed), options_(options), b_(graph_) {
    graph_.name = "random_" + std::to_string(seed);
  }

  ir::Graph run() {
    const Dim n = options_.symbolic ? Dim::symbol("N") : Dim(random_.in(1, 2));
    if (random_.chance(0.7)) {
      const Dim h = options_.symbolic ? Dim::symbol("H") : Dim(random_.in(5, 9));
      input({n, channels(), h, Dim(random_.in(5, 9))});
    }
    if (values_.empty() || random_.chance(0.5)) input({n, Dim(random_.in(2, 6)), Dim(random_.in(3, 20))});
    for (int i = 0; i < options_.nodes;) i += step();
    // What nobody reads are the results.
    for (ir::Value* v : values_)
      if (v->users.empty()) graph_.add_output(v->name, v);
    return std::move(graph_);
  }

 private:
  Dim channels() {
    static constexpr int64_t kCounts[] = {1, 2, 3, 4, 8, 16, 20, 32};
    return kCounts[random_.in(0, 7)];
  }
  void input(Shape shape) { values_.push_back(graph_.add_input("x", {DType::f32, std::move(shape), {}})); }
  ir::Value* constant(Shape shape) { return b_.constant(random_tensor({DType::f32, std::move(shape), {}}, random_)); }
  ir::Value* pick() {
    // Recent ones more often: deep rather than wide.
    const auto n = static_cast<int64_t>(values_.size());
    return values_[static_cast<size_t>(std::max(random_.in(0, n - 1), random_.in(0, n - 1)))];
  }
  int emit(std::string_view op, std::vector<ir::Value*> inputs, ir::Attributes attributes = {}) {
    values_.push_back(b_.add(op, std::move(inputs), std::move(attributes)));
    return 1;
  }

  /// Returns the number of nodes added; 0 if the choice did not fit.
  int step() {
    ir::Value* x = pick();
    switch (random_.in(0, 11)) {
      case 0:
      case 1:
        return unary(x);
      case 2:
      case 3:
        return binary(x);
      case 4:
      case 5:
        return convolution(x);
      case 6:
        return pool(x);
      case 7:
        return matmul(x);
      case 8:
        return reduce(x);
      case 9:
        return concat(x);
      case 10:
        return move(x);
      default:
        return normalise(x);
    }
  }

  int unary(ir::Value* x) {
    static constexpr const char* kOps[] = {"Relu", "Sigmoid", "Tanh", "Neg", "Abs", "HardSwish", "Silu", "Erf", "Gelu"};
    return emit(kOps[random_.in(0, 8)], {x});
  }

  int binary(ir::Value* x) {
    static constexpr const char* kOps[] = {"Add", "Sub", "Mul", "Max", "Min"};
    const char* op = kOps[random_.in(0, 4)];
    const Shape& shape = x->type.shape;
    // Another value of the shape, or a constant that broadcasts along some axes.
    if (random_.chance(0.5))
      for (ir::Value* v : values_)
        if (v != x && v->type.shape == shape && random_.chance(0.7)) return emit(op, {x, v});
    Shape small;
    for (const Dim& d : shape) small.push_back(d.is_const() && random_.chance(0.5) ? d : Dim(1));
    if (!small.empty() && random_.chance(0.3)) small.erase(small.begin());
    if (random_.chance(0.2)) small.clear();
    ir::Value* c = constant(small);
    return random_.chance(0.5) ? emit(op, {x, c}) : emit(op, {c, x});
  }

  static bool is_image(const ir::Value* x) { return x->type.rank() == 4 && x->type.shape[1].is_const(); }
  /// Wide and high enough for a kernel of 3, at the smallest sizes of random_inputs().
  static bool is_large(const ir::Value* x) {
    const auto enough = [&](size_t axis) {
      return x->type.shape[axis].evaluate({{"N", 1}, {"H", kLeastExtent}}).value_or(0) >= 3;
    };
    return is_image(x) && enough(2) && enough(3);
  }

  int convolution(ir::Value* x) {
    if (!is_image(x)) return 0;
    const int64_t in = x->type.shape[1].value();
    if (in > 64) return 0;
    const int64_t k = is_large(x) && random_.chance(0.6) ? 3 : 1, pad = k == 3 ? random_.in(0, 1) : 0;
    const bool depthwise = random_.chance(0.25);
    const int64_t out = depthwise ? in : channels().value(), stride = k == 3 ? random_.in(1, 2) : 1;
    std::vector<ir::Value*> inputs{x, constant({out, depthwise ? 1 : in, k, k})};
    if (random_.chance(0.6)) inputs.push_back(constant({out}));
    emit("Conv2D", inputs,
         {{"strides", Ints{stride, stride}}, {"pads", Ints(4, pad)}, {"groups", depthwise ? in : int64_t{1}}});
    // Values stay in a range where tolerances mean something.
    emit("Mul", {values_.back(), b_.constant(ir::Tensor::scalar(DType::f32, 1.0 / static_cast<double>(in * k * k)))});
    if (random_.chance(0.3)) {
      std::vector<ir::Value*> bn{values_.back()};
      for (int i = 0; i < 3; ++i) bn.push_back(constant({out}));
      bn.push_back(b_.constant(ir::Tensor::from_floats({out}, std::vector<float>(static_cast<size_t>(out), 1.5f))));
      emit("BatchNormalization", bn);
    }
    return 2;
  }

  int pool(ir::Value* x) {
    if (!is_large(x)) return 0;
    return emit(random_.chance(0.5) ? "MaxPool2D" : "AveragePool2D", {x},
                {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints(4, random_.in(0, 1))}});
  }

  int matmul(ir::Value* x) {
    if (x->type.rank() < 2 || !x->type.shape.back().is_const()) return 0;
    const Dim k = x->type.shape.back();
    emit("MatMul", {x, constant({k, Dim(random_.in(1, 20))})});
    emit("Mul", {values_.back(), b_.constant(ir::Tensor::scalar(
                                     DType::f32, 1.0 / static_cast<double>(std::max<int64_t>(1, k.value()))))});
    return 2;
  }

  int reduce(ir::Value* x) {
    if (x->type.rank() < 3) return 0;
    const bool pixels = x->type.rank() == 4 && random_.chance(0.7);
    const Ints axes = pixels ? Ints{2, 3} : Ints{random_.in(0, x->type.rank() - 1)};
    return emit(random_.chance(0.5) ? "ReduceMean" : "ReduceMax", {x},
                {{"axes", axes}, {"keepdims", pixels ? int64_t{1} : random_.in(0, 1)}});
  }

  int concat(ir::Value* x) {
    const int rank = x->type.rank();
    if (rank < 2) return 0;
    const int64_t axis = random_.in(1, rank - 1);
    for (ir::Value* v : values_) {
      bool fits = v != x && v->type.rank() == rank;
      for (int a = 0; fits && a < rank; ++a)
        fits = a == axis || v->type.shape[static_cast<size_t>(a)] == x->type.shape[static_cast<size_t>(a)];
      if (fits) return emit("Concat", {x, v}, {{"axis", axis}});
    }
    return 0;
  }

  int move(ir::Value* x) {
    const int rank = x->type.rank();
    if (rank < 2) return 0;
    if (random_.chance(0.5)) {
      Ints perm;
      for (int i = 0; i < rank; ++i) perm.push_back(i);
      std::swap(perm[static_cast<size_t>(random_.in(0, rank - 1))], perm[static_cast<size_t>(random_.in(0, rank - 1))]);
      return emit("Transpose", {x}, {{"perm", perm}});
    }
    Shape shape = x->type.shape;
    shape[shape.size() - 2] = shape[shape.size() - 2] * shape.back();
    shape.pop_back();
    return emit("Reshape", {x}, {{"shape", shape}});
  }

  int normalise(ir::Value* x) {
    if (x->type.rank() < 2 || !x->type.shape.back().is_const()) return 0;
    if (random_.chance(0.5)) return emit("Softmax", {x});
    const Dim d = x->type.shape.back();
    return emit("LayerNormalization", {x, constant({d}), constant({d})});
  }

  Random random_;
  RandomGraphOptions options_;
  ir::Graph graph_;
  ops::Builder b_;
  std::vector<ir::Value*> values_;
};

}  // namespace

ir::Graph random_graph(uint64_t seed, const RandomGraphOptions& options) { return Generator(seed, options).run(); }

}  // namespace cuvil::test
