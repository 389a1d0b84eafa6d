// The dynamic symbols of a 64-bit ELF file, and the symbols of a relocatable one.
#pragma once

#include <elf.h>

#include <cstdint>
#include <set>
#include <span>
#include <string>

namespace cuvil::backends::testing {

struct ElfSymbols {
  int machine = EM_NONE;
  std::set<std::string> exported, imported, needed;
};
/// Of .dynsym for a shared object, of .symtab for a relocatable object.
ElfSymbols elf_symbols(std::span<const uint8_t> file);

}  // namespace cuvil::backends::testing
