// Sliding windows over images: what convolutions and pooling share.
#pragma once

#include <functional>
#include <vector>

#include "core/ops/define.h"
#include "core/ops/lower.h"

namespace cuvil::ops {

/// strides, dilations, pads; the kernel's size comes from the caller.
std::vector<AttrSpec> window_attributes();

struct Window {
  Ints kernel, strides, dilations;
  Ints pads;  ///< top, left, bottom, right
  static Window of(const ir::Node& node, Ints kernel);

  int64_t extent(int d) const { return (kernel[static_cast<size_t>(d)] - 1) * dilations[static_cast<size_t>(d)] + 1; }
  /// floor((in + pads - extent) / stride) + 1, or rounded up with `ceil` (a window that would begin in the padding
  /// behind the image is left out). Fails if it is known to be less than 0; a window larger than the image fails.
  Dim out_size(const InferContext& c, const Dim& in, int d, bool ceil = false) const;
  bool padded() const;

  /// Loops over the window of the output position `at` ([n, channel, y, x]); the body gets the input position, turned
  /// off where it is outside of the image of h x w, and the tap's indices. `overhang`: windows may end behind the image
  /// without padding (ceil mode).
  void for_each_tap(LowerContext& c, const Coords& at, const Dim& h, const Dim& w,
                    const std::function<void(const Coords&, kernel::Expr ky, kernel::Expr kx)>& body,
                    bool overhang = false) const;
};
/// Checks lengths and signs of a node's window attributes.
Window window_of(const InferContext& c, Ints kernel);

/// Checks image, weight and groups of a convolution, plain or transposed; the weight's sizes are then known.
void check_conv(const InferContext& c);
/// Checks the bias, input 2, if there is one.
void check_bias(const InferContext& c, const Dim& channels);
/// What an output's sum starts from: its channel's bias, input 2, or 0, as accumulator_type() of input 0.
kernel::Expr bias_at(LowerContext& c, const Coords& at);

/// Position [channel] of a vector like the bias, from an image's coordinates.
Coords channel_coords(const Coords& at);
/// What sums of this type are kept in: f32 for f16 and bf16.
DType accumulator_type(DType t);
/// a * b + c, rounded once for floats.
kernel::Expr multiply_add(const kernel::Expr& a, const kernel::Expr& b, const kernel::Expr& c);

}  // namespace cuvil::ops
