// The rows of the list, each defined in its own file.
#pragma once

#include "core/schedules/schedule.h"

namespace cuvil::schedules {

extern const Schedule kConv2dNchwc;
extern const Schedule kConv2dFirstLayer;
extern const Schedule kConv2dDepthwise;
extern const Schedule kConvTranspose2d;
extern const Schedule kConvTranspose2dPlain;
extern const Schedule kMatMulPacked;
extern const Schedule kMatMulBatched;
extern const Schedule kPool2d;
extern const Schedule kResizeNchwc;
extern const Schedule kReference;

}  // namespace cuvil::schedules
