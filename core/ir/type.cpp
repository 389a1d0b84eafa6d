#include "core/ir/type.h"

#include <algorithm>

#include "core/base/error.h"

namespace cuvil::ir {

std::string Layout::str(int rank) const {
  if (is_plain()) return "";
  std::string tag;
  for (int i = 0; i < rank; ++i) {
    const int axis = order.empty() ? i : order[static_cast<size_t>(i)];
    const bool blocked = std::any_of(blocks.begin(), blocks.end(), [&](const Block& b) { return b.axis == axis; });
    tag += static_cast<char>((blocked ? 'A' : 'a') + axis);
  }
  for (const Block& b : blocks) tag += std::to_string(b.size) + static_cast<char>('a' + b.axis);
  return tag;
}

std::optional<Layout> Layout::parse(std::string_view tag, int rank) {
  Layout layout;
  if (tag.empty()) return layout;
  if (rank < 1 || rank > 26 || tag.size() < static_cast<size_t>(rank)) return std::nullopt;
  std::vector<bool> seen(static_cast<size_t>(rank), false), upper(seen), has_block(seen);
  size_t at = 0;
  for (; at < static_cast<size_t>(rank); ++at) {
    const char c = tag[at];
    const bool big = c >= 'A' && c <= 'Z';
    const int axis = big ? c - 'A' : c - 'a';
    if (axis < 0 || axis >= rank || seen[static_cast<size_t>(axis)]) return std::nullopt;
    seen[static_cast<size_t>(axis)] = true;
    upper[static_cast<size_t>(axis)] = big;
    layout.order.push_back(axis);
  }
  while (at < tag.size()) {
    int size = 0;
    for (; at < tag.size() && tag[at] >= '0' && tag[at] <= '9'; ++at) {
      size = size * 10 + (tag[at] - '0');
      if (size > 4096) return std::nullopt;
    }
    if (size < 2 || at == tag.size()) return std::nullopt;
    const int axis = tag[at++] - 'a';
    if (axis < 0 || axis >= rank) return std::nullopt;
    layout.blocks.push_back({axis, size});
    has_block[static_cast<size_t>(axis)] = true;
  }
  if (upper != has_block) return std::nullopt;
  bool identity = true;
  for (size_t i = 0; i < layout.order.size(); ++i) identity = identity && layout.order[i] == static_cast<int>(i);
  if (identity) layout.order.clear();
  return layout;
}

Layout Layout::nchwc(int rank, int c) {
  CUVIL_CHECK(rank >= 2 && c >= 2, "NCHWc needs a channel axis and a block");
  return {{}, {{1, c}}};
}

int Layout::block_of(int axis) const {
  int size = 1, count = 0;
  for (const Block& b : blocks)
    if (b.axis == axis) {
      size = b.size;
      ++count;
    }
  return count == 1 ? size : 1;
}

Shape Layout::physical_shape(const Shape& logical) const {
  if (is_plain()) return logical;
  Shape out;
  for (size_t i = 0; i < logical.size(); ++i) {
    const int axis = order.empty() ? static_cast<int>(i) : order[i];
    int64_t block = 1;
    for (const Block& b : blocks)
      if (b.axis == axis) block *= b.size;
    out.push_back(block == 1 ? logical[static_cast<size_t>(axis)] : ceildiv(logical[static_cast<size_t>(axis)], block));
  }
  for (const Block& b : blocks) out.emplace_back(b.size);
  return out;
}

Dim Type::bytes() const { return num_elements(layout.physical_shape(shape)) * Dim(size_of(dtype)); }

std::string Type::str() const {
  std::string s = to_string(shape);
  if (!layout.is_plain()) s.insert(s.size() - 1, "; " + layout.str(rank()));
  return std::string(name_of(dtype)) + s;
}

}  // namespace cuvil::ir
