// Schemas, type rules and the generated page.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "core/base/env.h"
#include "core/ops/builder.h"

namespace cuvil::ops {
namespace {

cuvil_status status_of(const std::function<void(ir::Graph&, Builder&, ir::Value*)>& build) {
  ir::Graph g;
  Builder b(g);
  try {
    build(g, b, g.add_input("x", {DType::f32, {2, 3, 8, 8}, {}}));
  } catch (const Error& e) {
    return e.status();
  }
  return CUVIL_OK;
}

TEST(Declaration, BadNodesAreRefusedByKind) {
  EXPECT_EQ(status_of([](auto&, Builder& b, auto* x) { b.add("Frobnicate", {x}); }), CUVIL_UNSUPPORTED_ERROR);
  EXPECT_EQ(status_of([](auto&, Builder& b, auto* x) { b.add("Relu", {x, x}); }), CUVIL_MODEL_ERROR);
  EXPECT_EQ(status_of([](auto&, Builder& b, auto*) { b.add("Relu", {nullptr}); }), CUVIL_MODEL_ERROR);
  EXPECT_EQ(status_of([](auto&, Builder& b, auto* x) { b.add("Relu", {x}, {{"slope", 1.0}}); }), CUVIL_MODEL_ERROR);
  EXPECT_EQ(status_of([](auto&, Builder& b, auto* x) { b.add("Transpose", {x}); }), CUVIL_MODEL_ERROR);
  EXPECT_EQ(status_of([](auto&, Builder& b, auto* x) { b.add("Transpose", {x}, {{"perm", 1.5}}); }), CUVIL_MODEL_ERROR);
  EXPECT_EQ(status_of([](auto&, Builder& b, auto* x) { b.add("Not", {x}); }), CUVIL_UNSUPPORTED_ERROR);
  EXPECT_EQ(status_of([](ir::Graph& g, Builder& b, auto* x) {
              b.add("Conv2D", {x, g.add_input("w", {DType::f32, {4, 5, 3, 3}, {}})});
            }),
            CUVIL_SHAPE_ERROR);
  EXPECT_EQ(
      status_of([](ir::Graph& g, Builder& b, auto* x) { b.add("Add", {x, g.add_input("y", {DType::f32, {7}, {}})}); }),
      CUVIL_SHAPE_ERROR);
}

TEST(Declaration, DefaultsAreWrittenOut) {
  ir::Graph g;
  Builder b(g);
  ir::Value* x = g.add_input("x", {DType::f32, {2, 3}, {}});
  EXPECT_EQ(b.add_node("LeakyRelu", {x})->attr<double>("alpha"), 0.01);
  EXPECT_EQ(b.add_node("LeakyRelu", {x}, {{"alpha", int64_t{2}}})->attr<double>("alpha"), 2.0);
  EXPECT_EQ(b.add_node("Reshape", {x}, {{"shape", std::vector<int64_t>{6}}})->output()->type.shape, Shape{6});
}

TEST(Declaration, OpenSizesAreRequirements) {
  ir::Graph g;
  Builder b(g);
  ir::Value* x = g.add_input("x", {DType::f32, {Dim::symbol("N"), 3}, {}});
  ir::Value* y = g.add_input("y", {DType::f32, {4, 3}, {}});
  const auto found = requirements(*b.add_node("Add", {x, y}));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].first, Dim::symbol("N"));
  EXPECT_EQ(found[0].second, Dim(4));
}

TEST(Declaration, LayoutsFollowTheFirstImage) {
  ir::Graph g;
  Builder b(g);
  const ir::Layout blocks = ir::Layout::nchwc(4, 16);
  ir::Value* x = g.add_input("x", {DType::f32, {1, 32, 8, 8}, blocks});
  EXPECT_EQ(b.add("Relu", {x})->type.layout, blocks);
  ir::Value* pooled = b.add("ReduceMean", {x}, {{"axes", std::vector<int64_t>{2, 3}}});
  EXPECT_EQ(pooled->type.layout, blocks);
  EXPECT_TRUE(b.add("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}})->type.layout.is_plain());
}

TEST(Declaration, PageIsUpToDate) {
  const std::string path = CUVIL_SOURCE_DIR "/docs/operators.md";
  const std::string want = markdown();
  if (env::get("CUVIL_BLESS")) std::ofstream(path) << want;
  std::ifstream in(path);
  std::stringstream has;
  has << in.rdbuf();
  EXPECT_EQ(has.str(), want) << "docs/operators.md is generated: CUVIL_BLESS=1 refreshes it";
}

}  // namespace
}  // namespace cuvil::ops
