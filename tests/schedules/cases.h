// The problems that every schedule is tested with: remainders in every dimension, borders, strides, symbolic sizes.
#pragma once

#include "tests/schedules/harness.h"

namespace cuvil::schedules::test {

/// Cases for a schedule of the list; the first ones of each family are the plainest.
std::vector<Case> cases_of(std::string_view schedule);

/// Names as a case has them, sizes of the image as numbers.
struct ConvCase {
  int64_t n = 1, c = 16, h = 7, w = 7, oc = 16, kh = 3, kw = 3, stride = 1, pad = 1, dilation = 1, groups = 1;
  bool bias = true;
  int64_t stride_w = 0;  ///< 0: as stride
};
Case conv2d(const ConvCase& c, Epilogue epilogue = Epilogue::none);
Case matmul(Shape a, Shape b, Epilogue epilogue = Epilogue::none, bool transposed_b = false);
/// The same with symbolic batch and image sizes.
Case symbolic_image(Case c);

}  // namespace cuvil::schedules::test
