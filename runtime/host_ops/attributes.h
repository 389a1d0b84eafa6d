// Attributes of a host operator's step.
#pragma once

#include <cstring>

#include "core/abi/cvl_generated.h"

namespace cuvil::runtime {

/// The first integer of an attribute; `fallback` if there is none.
inline int64_t int_attribute(const cvl::Step& step, const char* name, int64_t fallback) {
  if (!step.attributes()) return fallback;
  for (const cvl::Attribute* a : *step.attributes())
    if (strcmp(a->name()->c_str(), name) == 0 && a->ints() && a->ints()->size() > 0) return a->ints()->Get(0);
  return fallback;
}

}  // namespace cuvil::runtime
