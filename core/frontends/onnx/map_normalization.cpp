// Normalisations beside those that CIR has as operators, and statistics as further outputs.
#include "core/frontends/onnx/compose.h"

namespace cuvil::frontends::onnx {
namespace {

using V = Compose::V;

/// With its statistics: mean and 1 / sqrt(variance + epsilon) over the axes from `axis` on, in f32.
void layer_normalization(OpContext& c) {
  const Compose m(c);
  const int64_t axis = c.axis(c.attr_int("axis", -1), c.rank(0));
  const double epsilon = c.attr_float("epsilon", 1e-5);
  c.out(0, c.b.add("LayerNormalization", {c.in(0), c.in(1), c.in_or_null(2)}, {{"axis", axis}, {"epsilon", epsilon}},
                   c.out_name()));
  if (!c.wants(1) && !c.wants(2)) return;
  const auto onnx_type = static_cast<int32_t>(c.attr_int("stash_type", 1));
  const std::optional<DType> stash = dtype_of(onnx_type);
  if (!stash || !is_float(*stash)) c.malformed("LayerNormalization: stash_type " + onnx_type_name(onnx_type));
  std::vector<int64_t> axes;
  for (int64_t a = axis; a < c.rank(0); ++a) axes.push_back(a);
  V x = m.cast(c.in(0), *stash), mean = m.reduce("ReduceMean", x, axes), d = m.sub(x, mean);
  V variance = m.reduce("ReduceMean", m.mul(d, d), axes);
  c.out(1, mean);
  c.out(2, m.op("Reciprocal", {m.op("Sqrt", {m.add(variance, m.like(variance, epsilon))})}));
}

/// x over its 1- or 2-norm along an axis; where that is 0: 0.
void lp_normalization(OpContext& c) {
  const Compose m(c);
  const int64_t p = c.attr_int("p", 2);
  if (p != 1 && p != 2) c.malformed("LpNormalization with p = " + std::to_string(p));
  V x = c.in(0), norm = m.reduce(p == 1 ? "ReduceL1" : "ReduceL2", x, {c.axis(c.attr_int("axis", -1), c.rank(0))});
  V zero = m.like(x, 0);
  c.out(0, m.where(m.op("Equal", {norm, zero}), zero, m.div(x, norm)));
}

/// (x - mean) / (sqrt(mean of squares - square of mean) + 1e-9), as ONNX defines it.
void mean_variance_normalization(OpContext& c) {
  const Compose m(c);
  std::vector<int64_t> axes = c.attr_ints("axes", {0, 2, 3});
  for (int64_t& a : axes) a = c.axis(a, c.rank(0));
  V x = c.in(0), mean = m.reduce("ReduceMean", x, axes);
  V variance = m.sub(m.reduce("ReduceMean", m.mul(x, x), axes), m.mul(mean, mean));
  c.out(0, m.div(m.sub(x, mean), m.add(m.op("Sqrt", {variance}), m.like(x, 1e-9))));
}

/// In training mode: by the batch's own statistics, which also move the running ones.
void batch_normalization_in_training(OpContext& c) {
  const Compose m(c);
  V x = c.in(0);
  const int rank = c.rank(0);
  if (rank < 2) c.malformed("BatchNormalization of rank " + std::to_string(rank));
  std::vector<int64_t> axes;
  Shape channels(static_cast<size_t>(rank), Dim(1));
  channels[1] = x->type.shape[1];
  for (int64_t a = 0; a < rank; ++a)
    if (a != 1) axes.push_back(a);
  const auto wide = [&](V v) { return m.reshape(v, channels); };
  V mean = m.reduce("ReduceMean", x, axes), d = m.sub(x, mean), variance = m.reduce("ReduceMean", m.mul(d, d), axes);
  V deviation = m.op("Sqrt", {m.add(variance, m.like(x, c.attr_float("epsilon", 1e-5)))});
  c.out(0, m.add(m.mul(m.div(d, deviation), wide(c.in(1))), wide(c.in(2))));
  const double momentum = c.attr_float("momentum", 0.9);
  const auto moved = [&](size_t i, V now) {
    V running = c.in(i);
    return m.add(m.mul(running, momentum),
                 m.mul(m.cast(m.reshape(now, running->type.shape), running->type.dtype), 1 - momentum));
  };
  if (c.wants(1)) c.out(1, moved(3, mean));
  if (c.wants(2)) c.out(2, moved(4, variance));
}

void batch_normalization(OpContext& c) {
  if (c.opset >= 14 && c.attr_int("training_mode", 0) != 0) return batch_normalization_in_training(c);
  c.out(0, c.b.add("BatchNormalization", {c.in(0), c.in(1), c.in(2), c.in(3), c.in(4)},
                   {{"epsilon", c.attr_float("epsilon", 1e-5)}}, c.out_name()));
}

/// Before opset 21 scale and bias are per group.
void group_normalization(OpContext& c) {
  const Compose m(c);
  const int64_t groups = c.attr_int("num_groups", 1);
  V scale = c.in(1), bias = c.in(2);
  if (c.opset < 21) {
    if (groups < 1 || c.rank(0) < 2) c.malformed("GroupNormalization with " + std::to_string(groups) + " groups");
    const Dim channels = c.type(0).shape[1], each = floordiv(channels, Dim(groups));
    const auto per_channel = [&](V v) {
      return m.reshape(m.expand(m.reshape(v, {Dim(groups), Dim(1)}), {Dim(groups), each}), {channels});
    };
    scale = per_channel(scale);
    bias = per_channel(bias);
  }
  c.out(0, c.b.add("GroupNormalization", {c.in(0), scale, bias},
                   {{"num_groups", groups}, {"epsilon", c.attr_float("epsilon", 1e-5)}}, c.out_name()));
}

const Mapping kMappings[] = {
    {"LayerNormalization", layer_normalization},
    {"LpNormalization", lp_normalization},
    {"MeanVarianceNormalization", mean_variance_normalization},
    {"BatchNormalization", batch_normalization},
    {"GroupNormalization", group_normalization},
};

}  // namespace

std::span<const Mapping> normalization_mappings() { return kMappings; }

}  // namespace cuvil::frontends::onnx
