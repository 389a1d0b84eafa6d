// Structure: users, replacing, erasing, cloning, names; types, layouts, tensors.
#include "core/ir/graph.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace cuvil::ir {
namespace {

const Type kF32{DType::f32, {2, 3}, {}};

TEST(Graph, UsersHasOneEntryPerUse) {
  Graph g;
  Value* x = g.add_input("x", kF32);
  Value* y = g.add_input("y", kF32);
  Node* n = g.create("Add", {x, x}, {}, {kF32});
  EXPECT_EQ(x->users, (std::vector<Node*>{n, n}));
  n->set_input(1, y);
  EXPECT_EQ(x->users, std::vector<Node*>{n});
  EXPECT_EQ(y->users, std::vector<Node*>{n});
  n->clear_inputs();
  EXPECT_TRUE(x->users.empty());
  EXPECT_TRUE(y->users.empty());
}

TEST(Graph, AbsentInputsAreNull) {
  Graph g;
  Value* x = g.add_input("x", kF32);
  Node* n = g.create("Op", {nullptr, x}, {}, {kF32});
  EXPECT_EQ(n->input(0), nullptr);
  EXPECT_EQ(n->input(1), x);
  EXPECT_EQ(n->input(2), nullptr);
  n->set_input(0, x);
  EXPECT_EQ(x->users.size(), 2u);
}

TEST(Graph, ReplaceUsesReachesResultsAndRegions) {
  Graph g = parse(R"(graph @main(%x: f32[2], %y: f32[2]) -> (%x) {
    %a = If(%x) { () %b = Neg(%x) : f32[2] yield %x } : f32[2]
  })");
  Value* x = g.body.params[0].get();
  Value* y = g.body.params[1].get();
  g.replace_uses(x, y);
  EXPECT_TRUE(g.unused(x));
  EXPECT_EQ(y->users.size(), 2u);
  EXPECT_EQ(g.body.results[0], y);
  EXPECT_EQ(g.body.nodes.front()->regions[0].results[0], y);
  verify(g);
}

TEST(Graph, EraseForgetsUsesOfNestedRegions) {
  Graph g = parse(R"(graph @main(%x: f32[2]) -> (%x) {
    %a = If(%x) { () %b = If(%x) { () %c = Neg(%x) : f32[2] yield %c } : f32[2] yield %b } : f32[2]
  })");
  EXPECT_EQ(g.body.params[0]->users.size(), 3u);
  g.erase(g.body.nodes.front().get());
  EXPECT_TRUE(g.body.params[0]->users.empty());
  verify(g);
}

TEST(Graph, EraseOfAUsedNodeIsRefused) {
  Graph g;
  Node* n = g.create("Neg", {g.add_input("x", kF32)}, {}, {kF32});
  g.add_output("y", n->output());
  EXPECT_THROW(g.erase(n), Error);
}

TEST(Graph, CreateBeforeANode) {
  Graph g;
  Value* x = g.add_input("x", kF32);
  Node* last = g.create("Neg", {x}, {}, {kF32});
  Node* first = g.create("Abs", {x}, {}, {kF32}, {}, nullptr, last);
  EXPECT_EQ(g.body.nodes.front().get(), first);
  EXPECT_NE(first->id, last->id);
}

TEST(Graph, FreshNamesAreUnique) {
  Graph g;
  EXPECT_EQ(g.fresh_name("a"), "a");
  EXPECT_EQ(g.fresh_name("a"), "a_1");
  EXPECT_EQ(g.fresh_name("a_1"), "a_1_1");
  EXPECT_EQ(g.fresh_name("a"), "a_2");
  EXPECT_EQ(g.fresh_name(""), "v");
}

TEST(Graph, CloneIsEqualAndApart) {
  Graph g = parse(R"(graph @main(%x: f32[N]) -> (out = %y) source("m.onnx") {
    %y = Fused(%x) { (%p: f32[N]) %q = Neg(%p) : f32[N] yield %q } : f32[N] loc("a.py":3)
  })");
  Graph copy = g.clone();
  EXPECT_EQ(print(copy), print(g));
  verify(copy);
  EXPECT_EQ(copy.body.nodes.front()->id, g.body.nodes.front()->id);
  copy.replace_uses(copy.body.nodes.front()->output(), copy.body.params[0].get());
  copy.erase(copy.body.nodes.front().get());
  EXPECT_EQ(g.body.nodes.size(), 1u);
  verify(g);
}

TEST(Graph, SymbolsOfInputs) {
  const Graph g = parse("graph @main(%x: f32[N, 2*H+1], %y: f32[H]) -> () {}");
  EXPECT_EQ(g.symbols(), (std::vector<std::string>{"H", "N"}));
}

TEST(Attributes, TypedAccess) {
  Graph g;
  Node* n = g.create("Op", {}, {{"a", int64_t{3}}, {"s", std::string("x")}}, {});
  EXPECT_EQ(n->attr<int64_t>("a"), 3);
  EXPECT_EQ(n->attr_or<int64_t>("b", 7), 7);
  EXPECT_THROW(n->attr<double>("a"), Error);
  EXPECT_THROW(n->attr<int64_t>("b"), Error);
}

TEST(Layout, PhysicalShapes) {
  const Dim n = Dim::symbol("N");
  const Shape image{n, 20, 5, 7};
  EXPECT_EQ(to_string(Layout{}.physical_shape(image)), "[N, 20, 5, 7]");
  EXPECT_EQ(to_string(Layout::nchwc(4, 16).physical_shape(image)), "[N, 2, 5, 7, 16]");
  EXPECT_EQ(to_string(Layout::parse("acdb", 4)->physical_shape(image)), "[N, 5, 7, 20]");
  EXPECT_EQ(to_string(Layout::parse("Ba32b", 2)->physical_shape({64, 100})), "[4, 64, 32]");
  EXPECT_EQ(to_string(Layout::parse("ABcd8b4a2b", 4)->physical_shape({6, 17, 3, 3})), "[2, 2, 3, 3, 8, 4, 2]");
  EXPECT_EQ(to_string(Layout::nchwc(4, 16).physical_shape({1, Dim::symbol("C"), 2, 2})),
            "[1, ceildiv(C, 16), 2, 2, 16]");
}

TEST(Layout, TagsRoundTrip) {
  for (const char* tag : {"", "acdb", "aBcd16b", "Ba32b", "ABcd8b4a2b", "bac", "Ab4a"}) {
    const int rank = tag == std::string("Ba32b") || tag == std::string("Ab4a") ? 2 : tag == std::string("bac") ? 3 : 4;
    const auto l = Layout::parse(tag, rank);
    ASSERT_TRUE(l) << tag;
    EXPECT_EQ(l->str(rank), tag);
  }
  EXPECT_EQ(Layout::parse("aBcd16b", 4), Layout::nchwc(4, 16));
  EXPECT_EQ(Layout::nchwc(4, 16).block_of(1), 16);
  EXPECT_EQ(Layout::nchwc(4, 16).block_of(0), 1);
}

TEST(Layout, BadTags) {
  for (const char* tag :
       {"abc", "abcc", "abcde", "aBcd", "abcd16b", "aBcd16", "aBcd1b", "aBcd16e", "aBcd99999b", "a", "16b"})
    EXPECT_FALSE(Layout::parse(tag, 4)) << tag;
}

TEST(Type, TextAndBytes) {
  Type t{DType::f32, {Dim::symbol("N"), 20, 5, 7}, Layout::nchwc(4, 16)};
  EXPECT_EQ(t.str(), "f32[N, 20, 5, 7; aBcd16b]");
  EXPECT_EQ(t.bytes().str(), "4480*N");
  EXPECT_EQ((Type{DType::i64, {}, {}}.str()), "i64[]");
}

TEST(Tensor, Conversions) {
  EXPECT_EQ(Tensor::scalar(DType::f16, 65504).as_double(0), 65504);
  EXPECT_TRUE(std::isinf(Tensor::scalar(DType::f16, 65520).as_double(0)));
  EXPECT_EQ(Tensor::scalar(DType::f16, 65519).as_double(0), 65504);
  EXPECT_EQ(Tensor::scalar(DType::f16, std::ldexp(1, -24)).as_double(0), std::ldexp(1, -24));
  EXPECT_EQ(Tensor::scalar(DType::f16, 1 + std::ldexp(1, -11)).as_double(0), 1);
  EXPECT_EQ(Tensor::scalar(DType::bf16, 1 + std::ldexp(3, -9)).as_double(0), 1 + std::ldexp(1, -7));
  EXPECT_EQ(Tensor::scalar(DType::u8, 200).as_int(0), 200);
  EXPECT_EQ(Tensor::scalar(DType::i8, -3).as_int(0), -3);
  EXPECT_TRUE(std::isinf(Tensor::scalar(DType::f32, -INFINITY).as_double(0)));
  EXPECT_EQ(Tensor::scalar(DType::f32, -INFINITY).as_int(0), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Tensor::scalar(DType::i64, 1e30).as_int(0), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Tensor::from_floats({1}, {NAN}).as_int(0), 0);
  EXPECT_EQ(Tensor::from_ints({4, -5}).to_ints(), (std::vector<int64_t>{4, -5}));
}

TEST(Tensor, EqualComparesBits) {
  const Tensor zero = Tensor::from_floats({1}, {0.0f}), minus = Tensor::from_floats({1}, {-0.0f});
  EXPECT_TRUE(equal(zero, Tensor::from_floats({1}, {0.0f})));
  EXPECT_FALSE(equal(zero, minus));
  EXPECT_FALSE(equal(zero, Tensor::from_floats({1, 1}, {0.0f})));
  EXPECT_TRUE(equal(Tensor::from_floats({1}, {NAN}), Tensor::from_floats({1}, {NAN})));
}

}  // namespace
}  // namespace cuvil::ir
