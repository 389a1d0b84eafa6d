#include "core/schedules/list.h"

namespace cuvil::schedules {

namespace {
std::optional<std::string> refuse(const ops::Group&, const TargetInfo&) { return {}; }
}  // namespace

const Schedule kReference = {"reference", "The operator's own loop nest: the meaning, not the speed; takes everything.",
                             refuse, nullptr, ops::lower_reference};

}  // namespace cuvil::schedules
