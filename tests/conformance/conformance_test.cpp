// Every operator, every sample: the scalar loop nest gives what was written by hand; vectors, symbols and blocked
// layouts give what the scalar loop nest gives.
#include <gtest/gtest.h>

#include "tests/conformance/case.h"

namespace cuvil::conformance {
namespace {

class Conformance : public testing::TestWithParam<const ops::OpDef*> {};

void compare(const Case& c, const Outcome& got, const Outcome& want, const ir::Node& node) {
  EXPECT_EQ(got.code, 0) << c.name;
  ASSERT_EQ(got.outputs.size(), want.outputs.size()) << c.name;
  for (size_t i = 0; i < got.outputs.size(); ++i)
    EXPECT_EQ(difference(got.outputs[i], want.outputs[i], node.output(i)->type.dtype, c.sample->tolerance), "")
        << c.name << ", output " << i;
}

TEST_P(Conformance, Samples) {
  const ops::OpDef& op = *GetParam();
  const std::vector<ops::Sample> samples = op.samples();
  bool by_hand = false;
  for (const ops::Sample& sample : samples) {
    const Case plain = plain_case(op, sample);
    SCOPED_TRACE(plain.name);
    BuiltCase built = build(plain);
    ops::check(built.graph);
    const Outcome oracle = interpret(plain, 4);
    ASSERT_EQ(oracle.code, 0);
    if (!sample.expected.empty()) {
      by_hand = true;
      EXPECT_EQ(difference(oracle.outputs[0], sample.expected, built.node->output()->type.dtype, sample.tolerance), "");
    }
    for (int bytes : {16, 64}) compare(plain, interpret(plain, bytes), oracle, *built.node);
    compare(plain, interpret(plain, 32, /*for_cpu=*/true), oracle, *built.node);
    for (const Case& variant : variants(plain)) {
      SCOPED_TRACE(variant.name);
      compare(variant, interpret(variant, 16), oracle, *built.node);
      compare(variant, interpret(variant, 64, /*for_cpu=*/true), oracle, *built.node);
    }
  }
  EXPECT_TRUE(by_hand) << "at least one sample states its result";
}

INSTANTIATE_TEST_SUITE_P(All, Conformance, testing::ValuesIn(operators_with_kernels()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST(Operators, AreDeclaredWhole) {
  for (const ops::OpDef* d : ops::all()) {
    SCOPED_TRACE(d->name);
    EXPECT_TRUE(d->infer != nullptr);
    EXPECT_TRUE(d->is(ops::kPure));
    EXPECT_FALSE(d->doc.empty());
    EXPECT_EQ(d->is(ops::kElementwise), d->expr != nullptr);
    if (d->is(ops::kConstant | ops::kGroup | ops::kHost | ops::kControl)) continue;
    EXPECT_TRUE(d->expr != nullptr || d->lower != nullptr);
    EXPECT_TRUE(d->samples != nullptr);
  }
}

}  // namespace
}  // namespace cuvil::conformance
