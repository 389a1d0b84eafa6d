// From the compiler's plan to the executor's program.
#pragma once

#include <cstdint>
#include <vector>

#include "core/artifact/writer.h"
#include "core/plan/plan.h"

namespace cuvil::artifact {

/// The FlatBuffer Program of a plan, for model_from_program() and Variant::program alike. Its constants are the plan's,
/// in their order.
std::vector<uint8_t> serialize(const plan::Plan& plan);

/// A variant of a .cvl for the plan's target; constants are the plan's own bytes, which must outlive it.
Variant make_variant(const plan::Plan& plan, const TargetInfo& target, std::vector<uint8_t> code);

}  // namespace cuvil::artifact
