// What convolution schedules read from a node, and the geometry they share.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/target_info.h"
#include "core/schedules/words.h"

namespace cuvil::schedules {

/// A 2-d convolution, or a transposed one, in numbers. Batch and image sizes may be symbolic.
struct ConvProblem {
  Dim n, h, w, oh, ow;
  int64_t ic = 0, oc = 0;                ///< of the whole convolution
  int64_t groups = 1, gic = 0, goc = 0;  ///< channels per group
  int64_t kh = 1, kw = 1, sh = 1, sw = 1, dh = 1, dw = 1;
  int64_t pt = 0, pl = 0, pb = 0, pr = 0;
};

/// Reads what convolutions and pooling have alike: sizes of image and output, strides, dilations, pads.
void read_window(const ir::Node& node, ConvProblem& problem);
/// Reads a Conv2D; a reason if it is none, channels or kernel are not numbers, or dtypes not f32.
std::optional<std::string> read_conv(const ops::Group& group, ConvProblem& problem);
/// The same for a ConvTranspose2D.
std::optional<std::string> read_conv_transpose(const ops::Group& group, ConvProblem& problem);

/// True if input i of the anchor is memory, not a fused producer's expression.
bool reads_memory(const ops::Group& group, size_t input);
/// True if input i of the anchor is a constant of the graph.
bool is_constant(const ops::Group& group, size_t input);
/// Type of the group's stored output; that of the anchor's output if the epilogue keeps shapes.
const ir::Type& stored_type(const ops::Group& group);
/// How a schedule wants an image: in NCHWc of the target's vectors, or in plain layout.
enum class Image : uint8_t { blocked, plain };
/// Nothing if input 0 and the output lie so, and inputs 0 and 1 (if there is one) in memory; else the reason.
std::optional<std::string> refuse_images(const ops::Group& group, const TargetInfo& target, Image in = Image::blocked,
                                         Image out = Image::blocked);
/// Nothing if a weight lies as wanted or can be prepacked so; else the reason.
std::optional<std::string> refuse_weight(const ops::Group& group, size_t input, const ir::Layout& wanted);

/// Some rows of one image: what a task does.
struct RowTask {
  Expr n, begin, end;
  Expr block;  ///< of channels; null unless asked for
  Expr mask;   ///< lanes of the block that are channels; null: all
};
/// A phase of tasks of `rows` output rows each, for whole images or for each block of `lanes` channels.
void for_each_rows(LowerContext& c, const ConvProblem& p, int64_t rows,
                   const std::function<void(const RowTask&)>& body);
void for_each_block_rows(LowerContext& c, const ConvProblem& p, int64_t rows, int lanes,
                         const std::function<void(const RowTask&)>& body);

/// Which taps of a tile's pixels are inside the image: taps[kw][x]; empty: all taps of all pixels are.
using Taps = std::vector<std::vector<bool>>;
/// A run of equal tiles along an output row: `count` tiles of `width` pixels from `begin` on.
struct ColumnRun {
  int64_t begin = 0, count = 1;
  int width = 1;
  Taps taps;
};
/// Splits a row of `ow` pixels into tiles of `width` and a rest, grouped by which taps leave the image.
std::vector<ColumnRun> column_runs(const ConvProblem& p, int64_t w, int64_t ow, int width);
/// Covers an output row with tiles of `width`, by column_runs() where its length is a number. Elsewhere pixels at the
/// borders come one by one, with null taps: they are to be clipped at run time.
void cover_row(LowerContext& c, const ConvProblem& p, int width,
               const std::function<void(const Expr& ow, int width, const Taps* taps)>& body);
/// Covers [0, extent) with tiles between the borders [first, end) and single positions beyond; `name` is theirs.
void cover_between(Builder& b, const std::string& name, Expr first, Expr end, const Expr& extent, int width,
                   const std::function<void(const Expr& at, int width)>& tile,
                   const std::function<void(const Expr& at)>& border);

/// The taps of a tile of `width` pixels that read its input column `at`, counted from the first pixel's first tap.
struct TapOfColumn {
  int64_t kw;
  int pixel;
};
std::vector<TapOfColumn> taps_of_column(const ConvProblem& p, int width, int64_t at);
/// The number of input columns that a tile reads.
int64_t columns_read(const ConvProblem& p, int width);

/// Rows of the kernel that lie inside the image for an output row: [first, second).
std::pair<Expr, Expr> tap_range(const Expr& out, int64_t stride, int64_t dilation, int64_t pad, int64_t taps,
                                const Expr& extent);
/// True if no tap can leave the image along an axis.
bool never_clipped(const Dim& in, const Dim& out, int64_t stride, int64_t dilation, int64_t pad, int64_t taps);
/// Outputs [first, second) of which no tap leaves the image, as expressions over the extents.
std::pair<Expr, Expr> interior(const Expr& in, const Expr& out, int64_t stride, int64_t dilation, int64_t pad,
                               int64_t taps);

}  // namespace cuvil::schedules
