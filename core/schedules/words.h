// The words that every schedule's loop nest is written in, without their namespaces.
#pragma once

#include "core/ops/loops.h"
#include "core/ops/lower.h"

namespace cuvil::schedules {

using kernel::Buffer;
using kernel::Builder;
using kernel::Expr;
using kernel::LoopKind;
using kernel::Space;
using ops::Coords;
using ops::LowerContext;

}  // namespace cuvil::schedules
