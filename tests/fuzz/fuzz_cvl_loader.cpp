// The .cvl loader: any bytes give a model or a typed error. Checksums are made to fit, or the fuzzer would never get
// past them; the code is not loaded, for it is code.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "core/abi/cvl_file.h"
#include "core/abi/hash.h"
#include "cuvil/runtime.h"

namespace {

void reseal(uint8_t* data, size_t size) {
  using namespace cuvil::cvl;
  Header header;
  if (size < sizeof(header)) return;
  std::memcpy(&header, data, sizeof(header));
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kVersion;
  header.needs = 1;
  header.file_bytes = size;
  auto* sections = reinterpret_cast<Section*>(data + sizeof(header));
  const size_t n = std::min<size_t>(header.section_count, (size - sizeof(header)) / sizeof(Section));
  for (size_t i = 0; i < n; ++i) {
    Section& s = sections[i];
    if (s.kind == static_cast<uint32_t>(SectionKind::weights))
      s.checksum = 0;
    else if (s.offset <= size && s.bytes <= size - s.offset)
      s.checksum = cuvil::xxh64(data + s.offset, s.bytes);
  }
  header.checksum = 0;
  header.checksum = cuvil::xxh64(sections, n * sizeof(Section), cuvil::xxh64(&header, sizeof(header)));
  std::memcpy(data, &header, sizeof(header));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto* copy = static_cast<uint8_t*>(std::aligned_alloc(4096, (size + 4096) / 4096 * 4096));
  if (!copy) return 0;
  if (size > 0) std::memcpy(copy, data, size);
  reseal(copy, size);
  const cuvil_open_options options = {nullptr, 1, 1};
  cuvil_model* model = nullptr;
  const cuvil_status status = cuvil_open_memory(copy, size, &options, &model);
  if (status == CUVIL_INTERNAL_ERROR || (status == CUVIL_OK) != (model != nullptr)) std::abort();
  cuvil_close(model);
  std::free(copy);
  return 0;
}
