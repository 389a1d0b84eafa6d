// Types of CIR values: element type, logical shape with symbolic dimensions, physical layout.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dim.h"
#include "core/base/dtype.h"

namespace cuvil::ir {

/// How a tensor lies in memory. Shapes stay logical everywhere; a layout permutes axes and splits some into blocks.
/// The physical dimensions are: the axes in `order` (a blocked axis counts ceil(extent / product of its blocks)), then
/// the blocks, all row-major. Elements beyond a blocked axis's extent (padding) have no defined value: whoever reads
/// them must not let them influence results.
struct Layout {
  struct Block {
    int axis;
    int size;
    bool operator==(const Block&) const = default;
  };
  std::vector<int> order;     ///< empty = identity
  std::vector<Block> blocks;  ///< outermost block first
  bool is_plain() const { return order.empty() && blocks.empty(); }
  bool operator==(const Layout&) const = default;

  /// oneDNN's tags: lower-case letters for axes, upper case where blocked, blocks appended: NCHW is "abcd", NCHW16c is
  /// "aBcd16b", a GEMM weight in panels of 32 columns "Ba32b". Plain layouts print as "".
  std::string str(int rank) const;
  static std::optional<Layout> parse(std::string_view tag, int rank);

  /// Image layout with blocks of c channels on axis 1: NCHWc.
  static Layout nchwc(int rank, int c);
  /// Block size of an axis if it has exactly one block, else 1.
  int block_of(int axis) const;
  Shape physical_shape(const Shape& logical) const;
};

struct Type {
  DType dtype = DType::f32;
  Shape shape;
  Layout layout;
  bool operator==(const Type&) const = default;
  int rank() const { return static_cast<int>(shape.size()); }
  /// Bytes of the buffer, padding of blocks included.
  Dim bytes() const;
  /// "f32[N, 64, 56, 56]" or "f32[N, 64, 56, 56; aBcd16b]"
  std::string str() const;
};

}  // namespace cuvil::ir
