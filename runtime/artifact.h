// An open .cvl file: its frame, checked, and the code of the variant that runs.
#pragma once

#include "core/abi/cvl_file.h"
#include "core/abi/cvl_generated.h"
#include "cuvil/runtime.h"
#include "runtime/code_loader.h"

namespace cuvil::runtime {

struct Artifact {
  const uint8_t* data = nullptr;
  size_t bytes = 0;
  void* mapping = nullptr;  ///< to unmap, or
  void* copy = nullptr;     ///< to free
  const cvl::Section* sections = nullptr;
  uint32_t section_count = 0;
  const cvl::Model* model = nullptr;
  const uint8_t* weights = nullptr;
  uint64_t weight_bytes = 0;
  uint32_t selected = cvl::kNone;  ///< variant
  bool inspect_only = false;
  Code code;

  const uint8_t* section_data(uint32_t i) const { return data + sections[i].offset; }
};

/// Checks header, section table, the checksums of everything but the weights, and the Model's numbers.
cuvil_status parse_artifact(Artifact* artifact);

/// Sets `selected` to the variant called `name`, or if that is null to the one with most features that this processor
/// has. TargetError, listing the variants, if there is none.
cuvil_status select_variant(Artifact* artifact, const char* name);

bool is_supported(const cvl::Variant& variant);

/// Compares every blob with its checksum.
cuvil_status verify_weights(const Artifact& artifact);

}  // namespace cuvil::runtime
