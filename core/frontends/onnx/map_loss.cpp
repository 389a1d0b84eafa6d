// Losses: picked log-probabilities, weighted and reduced.
#include "core/frontends/onnx/compose.h"

namespace cuvil::frontends::onnx {
namespace {

using V = Compose::V;

/// loss = -x[n, target[n, ..], ..] * weight[target[n, ..]], reduced; ignored targets count nothing.
V negative_log_likelihood(OpContext& c, const Compose& m, V x) {
  const int rank = x->type.rank();
  if (rank < 2 || c.rank(1) != rank - 1)
    c.malformed(std::string(c.proto.op_type) + " takes [N, C, ...] and targets [N, ...]");
  const DType dtype = x->type.dtype;
  V target = m.cast(c.in(1), DType::i64), counted = nullptr;
  if (c.attribute("ignore_index")) {
    const V ignored = m.scalar(DType::i64, static_cast<double>(c.attr_int("ignore_index", 0)));
    counted = m.op("Not", {m.op("Equal", {target, ignored})});
    target = m.where(counted, target, m.scalar(DType::i64, 0));
  }
  V loss = m.op("GatherElements", {x, m.unsqueeze(target, 1)}, {{"axis", int64_t{1}}});
  loss = m.op("Neg", {m.squeeze(loss, 1)});
  V weight = c.has(2) ? m.op("Gather", {c.in(2), target}, {{"axis", int64_t{0}}}) : nullptr;
  if (weight) loss = m.mul(loss, weight);
  const V zero = m.scalar(dtype, 0);
  if (counted) {
    loss = m.where(counted, loss, zero);
    weight = m.where(counted, weight ? weight : m.scalar(dtype, 1), zero);
  }
  const std::string reduction = c.attr_string("reduction", "mean");
  if (reduction == "none") return loss;
  if (reduction == "sum") return m.reduce_all("ReduceSum", loss);
  if (reduction != "mean") c.malformed(std::string(c.proto.op_type) + ": reduction '" + reduction + "' is not defined");
  if (!weight) return m.reduce_all("ReduceMean", loss);
  return m.div(m.reduce_all("ReduceSum", loss), m.reduce_all("ReduceSum", weight));
}

void nll_loss(OpContext& c) {
  const Compose m(c);
  c.out(0, negative_log_likelihood(c, m, c.in(0)));
}

void softmax_cross_entropy_loss(OpContext& c) {
  const Compose m(c);
  if (c.rank(0) < 2) c.malformed("SoftmaxCrossEntropyLoss takes scores [N, C, ...]");
  V logs = m.op("LogSoftmax", {c.in(0)}, {{"axis", int64_t{1}}});
  c.out(0, negative_log_likelihood(c, m, logs));
  c.out(1, logs);
}

const Mapping kMappings[] = {
    {"NegativeLogLikelihoodLoss", nll_loss},
    {"SoftmaxCrossEntropyLoss", softmax_cross_entropy_loss},
};

}  // namespace

std::span<const Mapping> loss_mappings() { return kMappings; }

}  // namespace cuvil::frontends::onnx
