// Writes .cvl files. The same contents give the same bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/abi/abi.h"
#include "core/abi/cvl_generated.h"

namespace cuvil::artifact {

/// The FlatBuffer of a program: what the executor takes (runtime/executor.h) and a .cvl stores. The program's
/// constants carry size and hash only.
std::vector<uint8_t> pack(const cvl::ProgramT& program);

/// What one target gets.
struct Variant {
  std::string name;  ///< "x86-64-v3"
  cuvil_arch arch = CUVIL_ARCH_X86_64;
  uint64_t features = 0;                            ///< bits of cuvil_feature that the code needs
  std::vector<uint8_t> program;                     ///< pack()
  std::vector<uint8_t> code;                        ///< position-independent shared object
  std::vector<std::span<const uint8_t>> constants;  ///< in the program's order; equal ones are stored once
};

struct File {
  std::string producer = "cuvil";
  std::string name;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<Variant> variants;
};

/// The file in memory, 64-byte aligned parts relative to its start.
std::vector<uint8_t> to_bytes(const File& file);

/// Writes the file beside `path` and renames it there, so that a reader sees the old file or the new one. Throws
/// ArtifactError if the disk refuses.
void write_file(const File& file, const std::string& path);

}  // namespace cuvil::artifact
