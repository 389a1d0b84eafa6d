// The frame of a .cvl file: a header, a table of sections, the sections. Everything is little-endian. docs/cvl.md.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuvil::cvl {

/// "none" of cvl.fbs: no such size program, location, kernel.
inline constexpr uint32_t kNone = 0xFFFFFFFFu;

inline constexpr unsigned char kMagic[8] = {0x89, 'C', 'V', 'L', '\r', '\n', 0x1a, '\n'};
/// Version that this source writes. A reader takes files with version >= kOldestVersion and needs <= kVersion.
inline constexpr uint32_t kVersion = 1;
inline constexpr uint32_t kOldestVersion = 1;

inline constexpr uint64_t kPage = 4096;            ///< alignment of the weights section
inline constexpr uint64_t kSectionAlignment = 64;  ///< of the others, and of every blob in the weights
inline constexpr uint32_t kMaxSections = 1024;

struct Header {
  unsigned char magic[8];
  uint32_t version;  ///< of the writer
  uint32_t needs;    ///< least reader version that understands the file
  uint64_t file_bytes;
  uint32_t section_count;  ///< the table follows the header
  uint32_t reserved;       ///< 0
  uint64_t checksum;       ///< XXH64 of the header with this field 0, then of the table (seed: the former)
  uint64_t reserved2[3];   ///< 0
};
static_assert(sizeof(Header) == 64);

enum class SectionKind : uint32_t {
  model = 0,    ///< FlatBuffer Model; exactly one
  program = 1,  ///< FlatBuffer Program, one per variant
  code = 2,     ///< a shared object, one per variant
  weights = 3,  ///< at most one, the last: the Model's blobs in their order, gaps below 64 bytes and zero
};

/// Sections lie in the order of the table, without overlap; the gaps between them are zero.
struct Section {
  uint32_t kind;
  uint32_t reserved;  ///< 0
  uint64_t offset;
  uint64_t bytes;
  uint64_t checksum;  ///< XXH64 of the bytes, seed 0; of weights 0: every blob has its own
};
static_assert(sizeof(Section) == 32);

}  // namespace cuvil::cvl
