#include "tests/backend_cpu/elf_symbols.h"

#include <cstring>

#include "core/base/error.h"

namespace cuvil::backends::testing {
namespace {

template <class T>
T at(std::span<const uint8_t> file, uint64_t offset) {
  CUVIL_CHECK(offset + sizeof(T) <= file.size(), "an ELF file that is cut short");
  T value;
  std::memcpy(&value, file.data() + offset, sizeof(T));
  return value;
}

std::string string_at(std::span<const uint8_t> file, uint64_t offset) {
  std::string s;
  for (; offset < file.size() && file[offset]; ++offset) s += static_cast<char>(file[offset]);
  return s;
}

}  // namespace

ElfSymbols elf_symbols(std::span<const uint8_t> file) {
  const auto header = at<Elf64_Ehdr>(file, 0);
  ElfSymbols result;
  result.machine = header.e_machine;
  const auto section = [&](uint64_t i) { return at<Elf64_Shdr>(file, header.e_shoff + i * header.e_shentsize); };
  const uint32_t wanted = header.e_type == ET_DYN ? SHT_DYNSYM : SHT_SYMTAB;
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr s = section(i);
    if (s.sh_type == SHT_DYNAMIC) {
      const Elf64_Shdr strings = section(s.sh_link);
      for (uint64_t o = 0; o < s.sh_size; o += sizeof(Elf64_Dyn)) {
        const auto d = at<Elf64_Dyn>(file, s.sh_offset + o);
        if (d.d_tag == DT_NEEDED) result.needed.insert(string_at(file, strings.sh_offset + d.d_un.d_val));
      }
    }
    if (s.sh_type != wanted) continue;
    const Elf64_Shdr strings = section(s.sh_link);
    for (uint64_t o = sizeof(Elf64_Sym); o < s.sh_size; o += sizeof(Elf64_Sym)) {
      const auto symbol = at<Elf64_Sym>(file, s.sh_offset + o);
      const std::string name = string_at(file, strings.sh_offset + symbol.st_name);
      if (symbol.st_shndx == SHN_UNDEF) {
        result.imported.insert(name);
      } else if (ELF64_ST_BIND(symbol.st_info) != STB_LOCAL) {
        result.exported.insert(name);
      }
    }
  }
  return result;
}

}  // namespace cuvil::backends::testing
