// What convolution schedules read from a node, and the geometry they share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/target_info.h"
#include "core/ops/lower.h"

namespace cuvil::schedules {

/// A 2-d convolution, or a transposed one, in numbers. Batch and image sizes may be symbolic.
struct ConvProblem {
  Dim n, h, w, oh, ow;
  int64_t ic = 0, oc = 0;                ///< of the whole convolution
  int64_t groups = 1, gic = 0, goc = 0;  ///< channels per group
  int64_t kh = 1, kw = 1, sh = 1, sw = 1, dh = 1, dw = 1;
  int64_t pt = 0, pl = 0, pb = 0, pr = 0;
  bool bias = false;
};

/// Reads Conv2D or ConvTranspose2D; a reason if channels or kernel are not numbers or dtypes not f32.
std::optional<std::string> read_conv(const ops::Group& group, ConvProblem& problem);

/// True if input i of the anchor is memory, not a fused producer's expression.
bool reads_memory(const ops::Group& group, size_t input);
/// True if input i of the anchor is a constant of the graph.
bool is_constant(const ops::Group& group, size_t input);
/// Type of the group's stored output; that of the anchor's output if the epilogue keeps shapes.
const ir::Type& stored_type(const ops::Group& group);
/// Nothing if input 0 and the output are in NCHWc of the target's vectors, and inputs 0 and 1 in memory; else the
/// reason.
std::optional<std::string> refuse_images(const ops::Group& group, const TargetInfo& target);
/// Nothing if a weight lies as wanted or can be prepacked so; else the reason.
std::optional<std::string> refuse_weight(const ops::Group& group, size_t input, const ir::Layout& wanted);

/// A run of equal tiles along an output row: `count` tiles of `width` pixels from `begin` on. taps[kw][x] says whether
/// tap kw of pixel x is inside the image; empty: all taps of all pixels are.
struct ColumnRun {
  int64_t begin = 0, count = 1;
  int width = 1;
  std::vector<std::vector<bool>> taps;
};
/// Splits a row of `ow` pixels into tiles of `width` and a rest, grouped by which taps leave the image.
std::vector<ColumnRun> column_runs(const ConvProblem& p, int64_t w, int64_t ow, int width);

/// Rows of the kernel that lie inside the image for an output row: [first, second).
std::pair<kernel::Expr, kernel::Expr> tap_range(const kernel::Expr& out, int64_t stride, int64_t dilation, int64_t pad,
                                                int64_t taps, const kernel::Expr& extent);
/// True if no tap can leave the image along an axis.
bool never_clipped(const Dim& in, const Dim& out, int64_t stride, int64_t dilation, int64_t pad, int64_t taps);
/// Outputs [first, second) of which no tap leaves the image, as expressions over the extents.
std::pair<kernel::Expr, kernel::Expr> interior(const kernel::Expr& in, const kernel::Expr& out, int64_t stride,
                                               int64_t dilation, int64_t pad, int64_t taps);

}  // namespace cuvil::schedules
