// A fusion group gives what its nodes give one after the other.
#include <gtest/gtest.h>

#include <cmath>

#include "core/ops/builder.h"
#include "core/ops/lower.h"
#include "tests/conformance/case.h"

namespace cuvil::conformance {
namespace {

using Build = std::function<std::vector<ir::Value*>(ir::Graph&, ops::Builder&, std::vector<ir::Value*>)>;

ir::Graph plain_graph(const std::vector<ir::Type>& inputs, const Build& build) {
  ir::Graph g;
  ops::Builder b(g);
  std::vector<ir::Value*> values;
  for (size_t i = 0; i < inputs.size(); ++i) values.push_back(g.add_input("x" + std::to_string(i), inputs[i]));
  for (ir::Value* v : build(g, b, values)) {
    g.body.results.push_back(v);
    g.output_names.push_back(v->name);
  }
  return g;
}

/// The same nodes in the region of one Fused node.
ir::Graph fused_graph(const std::vector<ir::Type>& inputs, const Build& build) {
  ir::Graph inner = plain_graph(inputs, build), g;
  std::vector<ir::Value*> values;
  for (size_t i = 0; i < inputs.size(); ++i) values.push_back(g.add_input("in" + std::to_string(i), inputs[i]));
  std::vector<ir::Type> types;
  for (const ir::Value* v : inner.body.results) types.push_back(v->type);
  ir::Node* node = g.create("Fused", values, {}, types);
  node->regions.push_back(std::move(inner.body));
  for (const auto& out : node->outputs) {
    g.body.results.push_back(out.get());
    g.output_names.push_back(out->name);
  }
  return g;
}

std::vector<double> numbers(int64_t n, double phase) {
  std::vector<double> v;
  for (int64_t i = 0; i < n; ++i) v.push_back(std::sin(phase + static_cast<double>(i) * 0.7) * 2);
  return v;
}

void check_fusion(const std::vector<ir::Type>& inputs, const Build& build, const Symbols& symbols = {}) {
  const ir::Graph plain = plain_graph(inputs, build), fused = fused_graph(inputs, build);
  std::vector<std::vector<double>> values;
  for (const ir::Type& t : inputs)
    values.push_back(numbers(num_elements(evaluate(t, symbols).shape).value(), static_cast<double>(values.size())));
  const auto want = run_graph(plain, values, symbols, 4);
  for (int bytes : {16, 64}) {
    const auto got = run_graph(fused, values, symbols, bytes);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(difference(got[i], want[i], plain.body.results[i]->type.dtype, 1e-5), "") << "output " << i;
  }
}

ir::Type f32(Shape shape, ir::Layout layout = {}) { return {DType::f32, std::move(shape), std::move(layout)}; }

std::vector<ir::Value*> conv_add_relu(ir::Graph&, ops::Builder& b, std::vector<ir::Value*> x) {
  ir::Value* y = b.add("Conv2D", {x[0], x[1], x[2]}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  return {b.add("Relu", {b.add("Add", {y, x[3]})})};
}

TEST(Fused, EpilogueOfAConvolution) {
  check_fusion({f32({2, 3, 6, 9}), f32({20, 3, 3, 3}), f32({20}), f32({2, 20, 6, 9})}, conv_add_relu);
}

TEST(Fused, EpilogueInBlocks) {
  const ir::Layout blocks = ir::Layout::nchwc(4, 16);
  check_fusion({f32({1, 24, 5, 6}, blocks), f32({20, 24, 3, 3}), f32({20}), f32({1, 20, 5, 6}, blocks)}, conv_add_relu);
}

TEST(Fused, EpilogueWithBroadcastAndSymbols) {
  const Dim n = Dim::symbol("N"), s = Dim::symbol("S");
  check_fusion({f32({n, s, 24}), f32({24, 19}), f32({19})},
               [](ir::Graph&, ops::Builder& b, std::vector<ir::Value*> x) {
                 return std::vector<ir::Value*>{b.add("Gelu", {b.add("Add", {b.add("MatMul", {x[0], x[1]}), x[2]})})};
               },
               {{"N", 2}, {"S", 5}});
}

TEST(Fused, ValueOfTheAnchorAndOfItsEpilogue) {
  check_fusion({f32({5, 8}), f32({8, 17})}, [](ir::Graph&, ops::Builder& b, std::vector<ir::Value*> x) {
    ir::Value* y = b.add("MatMul", {x[0], x[1]});
    return std::vector<ir::Value*>{y, b.add("Silu", {y})};
  });
}

TEST(Fused, PrologueIsNotSeenByPadding) {
  check_fusion({f32({1, 3, 5, 6}), f32({3, 1, 1}), f32({4, 3, 3, 3})}, [](ir::Graph&, ops::Builder& b,
                                                                          std::vector<ir::Value*> x) {
    ir::Value* y = b.add("Exp", {b.add("Add", {x[0], x[1]})});
    return std::vector<ir::Value*>{b.add("Conv2D", {y, x[2]}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}})};
  });
}

TEST(Fused, PrologueOfAReduction) {
  check_fusion({f32({4, 37}), f32({4, 37})}, [](ir::Graph&, ops::Builder& b, std::vector<ir::Value*> x) {
    ir::Value* y = b.add("Exp", {b.add("Mul", {x[0], x[1]})});
    return std::vector<ir::Value*>{b.add("ReduceSum", {y}, {{"axes", std::vector<int64_t>{1}}})};
  });
}

std::vector<ir::Value*> squeeze_excite(ir::Graph&, ops::Builder& b, std::vector<ir::Value*> x) {
  ir::Value* gate = b.add("Sigmoid", {x[1]});
  ir::Value* y = b.add("Mul", {x[0], gate});
  ir::Value* half = b.constant(ir::Tensor::scalar(DType::f32, 0.5));
  return {b.add("Mul", {y, half}), b.add("Add", {y, x[2]})};
}

TEST(Fused, ElementwiseOfSeveralResults) {
  check_fusion({f32({2, 20, 3, 5}), f32({2, 20, 1, 1}), f32({20, 1, 1})}, squeeze_excite);
}
TEST(Fused, ElementwiseInBlocks) {
  const ir::Layout blocks = ir::Layout::nchwc(4, 16);
  check_fusion({f32({2, 32, 3, 5}, blocks), f32({2, 32, 1, 1}, blocks), f32({32, 1, 1})}, squeeze_excite);
  check_fusion({f32({2, 20, 3, 5}, blocks), f32({2, 20, 1, 1}, blocks), f32({20, 1, 1})}, squeeze_excite);
  check_fusion({f32({2, 20, 3, 5}, blocks), f32({2, 20, 1, 1}), f32({20, 1, 1})}, squeeze_excite);
}
TEST(Fused, ElementwiseWithSymbols) {
  const Dim n = Dim::symbol("N"), h = Dim::symbol("H");
  check_fusion({f32({n, 20, h, 5}), f32({n, 20, 1, 1}), f32({20, 1, 1})}, squeeze_excite, {{"N", 2}, {"H", 3}});
}

TEST(Fused, LongChainsStaySmall) {
  check_fusion({f32({40})}, [](ir::Graph&, ops::Builder& b, std::vector<ir::Value*> x) {
    ir::Value* v = x[0];
    for (int i = 0; i < 60; ++i) v = b.add("Gelu", {v});
    return std::vector<ir::Value*>{v};
  });
}

}  // namespace
}  // namespace cuvil::conformance
