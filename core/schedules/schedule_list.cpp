#include "core/schedules/list.h"

namespace cuvil::schedules {

std::span<const Schedule> all() {
  // clang-format off: a line a schedule
  static const Schedule rows[] = {
      kConv2dDepthwise,
      kConv2dNchwc,
      kConv2dFirstLayer,
      kConvTranspose2d,
      kConvTranspose2dPlain,
      kMatMulPacked,
      kMatMulBatched,
      kPool2d,
      kResizeNchwc,
      kReference,
  };
  // clang-format on
  return rows;
}

const Schedule* find(std::string_view name) {
  for (const Schedule& s : all())
    if (s.name == name) return &s;
  return nullptr;
}

Choice choose(const ops::Group& group, const TargetInfo& target) {
  Choice choice;
  for (const Schedule& s : all()) {
    std::optional<std::string> reason = s.refuse(group, target);
    if (!reason) {
      choice.schedule = &s;
      return choice;
    }
    choice.refusals.emplace_back(s.name, std::move(*reason));
  }
  return choice;
}

}  // namespace cuvil::schedules
