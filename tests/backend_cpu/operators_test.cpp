// Every operator, cast and access of every element type, for every target that this machine runs.
#include "tests/backend_cpu/harness.h"
#include "tests/backend_cpu/kernels.h"

namespace cuvil::backends::testing {
namespace {

using TypeAndTarget = std::tuple<int, std::string>;
class Operators : public ::testing::TestWithParam<TypeAndTarget> {};

TEST_P(Operators, AsInterpreted) {
  const auto& [dtype, target] = GetParam();
  expect_as_interpreted(typed_cases(static_cast<DType>(dtype)), TargetInfo::named(target));
}

std::string name_of_case(const ::testing::TestParamInfo<TypeAndTarget>& info) {
  std::string name = std::string(name_of(static_cast<DType>(std::get<0>(info.param)))) + "_" + std::get<1>(info.param);
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Types, Operators,
                         ::testing::Combine(::testing::Range(0, kDTypeCount),
                                            ::testing::ValuesIn(widest_and_narrowest())),
                         name_of_case);

TEST(OtherOperators, AsInterpreted) {
  for (const std::string& target : runnable_targets()) {
    SCOPED_TRACE(target);
    expect_as_interpreted(other_cases(), TargetInfo::named(target));
  }
}

}  // namespace
}  // namespace cuvil::backends::testing
