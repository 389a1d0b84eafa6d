// From the compiler's plan to the executor's program.
#pragma once

#include <cstdint>
#include <vector>

#include "core/artifact/writer.h"
#include "core/plan/plan.h"

namespace cuvil::artifact {

/// Whether a program says its constants' hashes: a file's does; in the same process nobody would compare them, and
/// reading all weights costs time.
enum class ConstantHashes : uint8_t { unknown, computed };

/// The FlatBuffer Program of a plan, for model_from_program() and Variant::program alike. Its constants are the plan's,
/// in their order.
std::vector<uint8_t> serialize(const plan::Plan& plan, ConstantHashes hashes);

/// A variant of a .cvl for the plan's target; constants are the plan's own bytes, which must outlive it.
Variant make_variant(const plan::Plan& plan, const TargetInfo& target, std::vector<uint8_t> code);

}  // namespace cuvil::artifact
