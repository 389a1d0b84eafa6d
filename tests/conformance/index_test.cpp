// Indices that are data: nothing outside is read or written, the kernel says so instead.
#include <gtest/gtest.h>

#include "tests/conformance/case.h"

namespace cuvil::conformance {
namespace {

int32_t code_of(std::string_view op, std::vector<std::optional<ir::Type>> inputs,
                std::vector<std::vector<double>> values, ir::Attributes attributes = {}) {
  ops::Sample sample;
  sample.name = "bad";
  sample.inputs = std::move(inputs);
  sample.values = std::move(values);
  sample.attributes = std::move(attributes);
  return interpret(plain_case(ops::get(op), sample), 64).code;
}

const ir::Type kData{DType::f32, {3, 4}, {}};
ir::Type indices(Shape shape) { return {DType::i64, std::move(shape), {}}; }

TEST(Indices, OutOfRangeFails) {
  for (double bad : {3.0, -4.0, 1e15}) {
    EXPECT_EQ(code_of("Gather", {kData, indices({2})}, {{}, {0, bad}}), CUVIL_KERNEL_INDEX_OUT_OF_RANGE);
    EXPECT_EQ(code_of("GatherElements", {kData, indices({1, 1})}, {{}, {bad}}), CUVIL_KERNEL_INDEX_OUT_OF_RANGE);
    EXPECT_EQ(code_of("GatherND", {kData, indices({1, 1})}, {{}, {bad}}), CUVIL_KERNEL_INDEX_OUT_OF_RANGE);
    EXPECT_EQ(code_of("ScatterElements", {kData, indices({1, 1}), ir::Type{DType::f32, {1, 1}, {}}}, {{}, {bad}}),
              CUVIL_KERNEL_INDEX_OUT_OF_RANGE);
    EXPECT_EQ(code_of("ScatterND", {kData, indices({1, 1}), ir::Type{DType::f32, {1, 4}, {}}}, {{}, {bad}}),
              CUVIL_KERNEL_INDEX_OUT_OF_RANGE);
  }
  EXPECT_EQ(code_of("Gather", {kData, indices({2})}, {{}, {2, -3}}), 0);
}

}  // namespace
}  // namespace cuvil::conformance
