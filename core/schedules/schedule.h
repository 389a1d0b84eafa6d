// Schedules: hand-thought loop nests for one family of operators each. Every schedule is a row of one ordered list,
// which dispatch, tests and benchmarks walk alike; the last row is the reference lowering, which takes everything.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/target_info.h"
#include "core/ops/lower.h"

namespace cuvil::schedules {

/// How a schedule wants a constant input (weights): in this layout (core/ir/type.h), at compile time.
struct Prepack {
  size_t input;  ///< of the anchor
  ir::Layout layout;
};

struct Schedule {
  std::string_view name;  ///< "conv2d_nchwc"
  std::string_view doc;   ///< one sentence: the loop nest and where it wins
  /// Nothing, or why this group is not for it: a sentence that a user reads in the report.
  std::optional<std::string> (*refuse)(const ops::Group& group, const TargetInfo& target);
  /// Layouts wanted for constant inputs. May be null: none. Called with weights still plain; `build` and `refuse` see
  /// the types after prepacking.
  std::vector<Prepack> (*prepack)(const ops::Group& group, const TargetInfo& target);
  kernel::Kernel (*build)(const ops::Group& group, const TargetInfo& target, std::string kernel_name);
};

/// All, best first; ends with "reference".
std::span<const Schedule> all();
const Schedule* find(std::string_view name);

struct Choice {
  const Schedule* schedule = nullptr;
  std::vector<std::pair<std::string_view, std::string>> refusals;  ///< of those before it: name, reason
};
/// The first that does not refuse. Deterministic.
Choice choose(const ops::Group& group, const TargetInfo& target);

}  // namespace cuvil::schedules
