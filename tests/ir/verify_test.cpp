// Every rule of the verifier, broken once.
#include <gtest/gtest.h>

#include "core/ir/graph.h"

namespace cuvil::ir {
namespace {

const Type kF32{DType::f32, {2, 3}, {}};

struct Verify : testing::Test {
  Graph g;
  Value* x = g.add_input("x", kF32);
  Node* a = g.create("A", {x}, {}, {kF32});
  Node* b = g.create("B", {a->output()}, {}, {kF32});
  Verify() { g.add_output("y", b->output()); }
  std::string violation() const { return find_violation(g).value_or("none"); }
};

TEST_F(Verify, AcceptsAGoodGraph) {
  EXPECT_EQ(violation(), "none");
  EXPECT_NO_THROW(verify(g));
}
TEST_F(Verify, NamesTheGraph) {
  a->op = "";
  try {
    verify(g);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), CUVIL_INTERNAL_ERROR);
    EXPECT_NE(std::string(e.what()).find("graph 'main' breaks a rule of CIR: a node has no operator"),
              std::string::npos);
  }
}
TEST_F(Verify, Names) {
  x->name = "";
  EXPECT_EQ(violation(), "a value has no name");
  x->name = a->output()->name;
  EXPECT_EQ(violation(), "two values have the name 'v'");
}
TEST_F(Verify, Ids) {
  b->id = a->id;
  EXPECT_EQ(violation(), "two nodes have id 0");
}
TEST_F(Verify, Producers) {
  a->output()->producer = b;
  EXPECT_EQ(violation(), "the producer of 'v' is not the node whose output it is");
  a->output()->producer = a;
  x->producer = a;
  EXPECT_EQ(violation(), "parameter 'x' has a producer");
}
TEST_F(Verify, Order) {
  g.body.nodes.reverse();
  EXPECT_EQ(violation(), "an input of B is not defined before it");
}
TEST_F(Verify, Results) {
  Graph other;
  g.body.results[0] = other.add_input("z", kF32);
  EXPECT_EQ(violation(), "a region's result is not a value that is visible in it");
  g.body.results.clear();
  EXPECT_EQ(violation(), "results of the graph and their names differ in number");
}
TEST_F(Verify, Users) {
  x->users.push_back(b);
  EXPECT_EQ(violation(), "the list of users of 'x' is not the list of the nodes that read it");
  x->users.clear();
  EXPECT_EQ(violation(), "the list of users of 'x' is not the list of the nodes that read it");
}
TEST_F(Verify, Layouts) {
  x->type.layout.order = {1, 1};
  EXPECT_EQ(violation(), "'x': the order of a layout is not a permutation of the axes");
  x->type.layout.order = {0, 1};
  EXPECT_EQ(violation(), "'x': the order of a layout is the identity, written out");
  x->type.layout = {{}, {{2, 16}}};
  EXPECT_EQ(violation(), "'x': a layout has a block of no axis, or smaller than 2");
}
TEST_F(Verify, Sizes) {
  b->output()->type.shape = {-1};
  EXPECT_EQ(violation(), "'v_1' has a negative size: f32[-1]");
  b->output()->type.shape = {Dim::symbol("N")};
  EXPECT_EQ(violation(), "'v_1' has a size of N, which occurs in no input of the graph and is set by no node before");
}
TEST_F(Verify, Regions) {
  Region r;
  r.results.push_back(b->output());
  a->regions.push_back(std::move(r));
  EXPECT_EQ(violation(), "a region's result is not a value that is visible in it");
}
TEST_F(Verify, Constants) {
  a->attributes["t"] = Tensor{kF32, nullptr};
  EXPECT_EQ(violation(), "attribute 't' of A: a constant without bytes");
}

}  // namespace
}  // namespace cuvil::ir
