// The plan's constants, and what a program says of them.
#include <gtest/gtest.h>

#include "core/abi/cvl_file.h"
#include "core/artifact/program.h"
#include "core/driver/pipeline.h"
#include "core/ops/builder.h"

namespace cuvil::driver {
namespace {

/// y = x + c for each constant.
plan::Plan plan_with(const std::vector<ir::Tensor>& constants) {
  ir::Graph graph;
  ops::Builder b(graph);
  ir::Value* x = graph.add_input("x", constants[0].type);
  for (size_t i = 0; i < constants.size(); ++i)
    graph.add_output("y" + std::to_string(i), b.add("Add", {x, b.constant(constants[i])}));
  return lower(std::move(graph), TargetInfo::host(), false).plan;
}

ir::Tensor constant_with(size_t index, float value) {
  std::vector<float> values(10000, 1);
  values[index] = value;
  return ir::Tensor::from_floats({10000}, values);
}

TEST(Constants, EqualOnesAreOne) {
  const plan::Plan plan = plan_with({constant_with(5000, 2), constant_with(5000, 3), constant_with(5000, 2)});
  EXPECT_EQ(plan.constants.size(), 2u) << "which differ in the middle only";
}

TEST(Constants, FilesHaveTheirHashes) {
  const plan::Plan plan = plan_with({constant_with(0, 2)});
  for (const auto hashes : {artifact::ConstantHashes::unknown, artifact::ConstantHashes::computed}) {
    const std::vector<uint8_t> bytes = artifact::serialize(plan, hashes);
    const auto* constants = flatbuffers::GetRoot<cvl::Program>(bytes.data())->constants();
    ASSERT_EQ(constants->size(), 1u);
    EXPECT_EQ(constants->Get(0)->hash() != 0, hashes == artifact::ConstantHashes::computed);
  }
}

}  // namespace
}  // namespace cuvil::driver
