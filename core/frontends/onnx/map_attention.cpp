// Attention and what stands beside it in transformers: rotary embeddings, caches, gated units. Spelled out in matrix
// products, softmax and masks.
#include <cmath>
#include <limits>

#include "core/frontends/onnx/compose.h"

namespace cuvil::frontends::onnx {
namespace {

using V = Compose::V;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// [B, S, heads * D] -> [B, heads, S, D]
V split_heads(OpContext& c, const Compose& m, V x, int64_t heads) {
  if (heads <= 0) c.malformed(std::string(c.proto.op_type) + " of rank 3 needs its numbers of heads");
  const Shape& s = x->type.shape;
  if (s[2].is_const() && s[2].value() % heads != 0)
    c.malformed(std::string(c.proto.op_type) + ": " + s[2].str() + " columns do not divide into " +
                std::to_string(heads) + " heads");
  return m.transpose(m.reshape(x, {s[0], s[1], Dim(heads), floordiv(s[2], Dim(heads))}), {0, 2, 1, 3});
}

/// [B, H, S, D] -> [B, S, H * D]
V join_heads(const Compose& m, V x) {
  const Shape s = x->type.shape;
  return m.reshape(m.transpose(x, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
}

/// Every head `times` times in a row: [B, H, S, D] -> [B, H * times, S, D].
V repeat_heads(const Compose& m, V x, int64_t times) {
  if (times == 1) return x;
  const Shape s = x->type.shape;
  V wide = m.expand(m.reshape(x, {s[0], s[1], Dim(1), s[2], s[3]}), {s[0], s[1], Dim(times), s[2], s[3]});
  return m.reshape(wide, {s[0], s[1] * Dim(times), s[2], s[3]});
}

/// How many query heads share one of keys and values.
int64_t group_size(OpContext& c, const Dim& query_heads, const Dim& heads) {
  if (query_heads == heads) return 1;
  if (!query_heads.is_const() || !heads.is_const())
    c.unsupported("attention with symbolic, different numbers of heads");
  if (heads.value() < 1 || query_heads.value() % heads.value() != 0)
    c.malformed(std::string(c.proto.op_type) + ": " + query_heads.str() + " query heads cannot share " + heads.str() +
                " heads of keys");
  return query_heads.value() / heads.value();
}

std::optional<double> attr_scale(OpContext& c) {
  return c.attribute("scale") ? std::optional(c.attr_float("scale", 0)) : std::nullopt;
}
double default_scale(OpContext& c, const Dim& head_size) {
  if (!head_size.is_const()) c.unsupported("attention without `scale` whose head size is symbolic");
  return 1 / std::sqrt(static_cast<double>(head_size.value()));
}

/// What is added to the scores: null if nothing is.
struct Bias {
  V value = nullptr;
  bool may_hide_rows = false;  ///< a row may have no key at all
};

class Masks {
 public:
  Masks(OpContext& c, const Compose& m, V query, const Dim& queries, const Dim& keys)
      : c_(c), m_(m), dtype_(query->type.dtype), queries_(queries), keys_(keys) {}

  Bias bias() {
    Bias b;
    if (c_.has(3)) add_given(b);
    add_causal_and_window(b);
    if (c_.has(6)) {
      allow(m_.op("Less", {columns(), per_batch(m_.cast(c_.in(6), DType::i64))}));
      b.may_hide_rows = true;
    }
    if (allowed_) {
      V hidden = m_.where(allowed_, m_.scalar(dtype_, 0), m_.scalar(dtype_, -kInfinity));
      b.value = b.value ? m_.add(b.value, hidden) : hidden;
    }
    return b;
  }

 private:
  void allow(V condition) { allowed_ = allowed_ ? m_.op("And", {allowed_, condition}) : condition; }
  V columns() { return m_.reshape(m_.count(keys_), {Dim(1), keys_}); }
  V per_batch(V x) { return m_.reshape(x, {x->type.shape[0], Dim(1), Dim(1), Dim(1)}); }

  void add_given(Bias& b) {
    V mask = c_.in(3);
    const bool boolean = mask->type.dtype == DType::boolean;
    const int rank = mask->type.rank();
    if (rank < 1 || rank > 4) c_.malformed("Attention: a mask of rank " + std::to_string(rank));
    const Dim width = mask->type.shape.back();
    if (c_.opset >= 24 && width.is_const() && keys_.is_const() && width.value() < keys_.value()) {
      // A shorter mask hides the keys behind its end.
      std::vector<int64_t> pads(static_cast<size_t>(2 * rank), 0);
      pads.back() = keys_.value() - width.value();
      if (boolean) mask = m_.where(mask, m_.scalar(dtype_, 0), m_.scalar(dtype_, -kInfinity));
      mask = m_.op("Pad", {mask}, {{"pads", pads}, {"value", -kInfinity}});
      b.value = m_.cast(mask, dtype_);
    } else if (boolean) {
      allow(mask);
    } else {
      b.value = m_.cast(mask, dtype_);
    }
    b.may_hide_rows = true;
  }

  void add_causal_and_window(Bias& b) {
    const bool causal = c_.attr_int("is_causal", 0) != 0;
    const int64_t left = c_.attr_int("left_window_size", -1), right = c_.attr_int("right_window_size", -1);
    if (left < -1 || right < -1) c_.malformed("Attention: a window size below -1");
    if (!causal && left < 0 && right < 0) return;
    // Positions of the queries among the keys.
    V rows = m_.reshape(m_.count(queries_), {queries_, Dim(1)});
    if (c_.has(4)) {
      rows = m_.add(rows, m_.size(c_.type(4).shape[2]));
    } else if (c_.has(6)) {
      rows = m_.add(rows, m_.sub(per_batch(m_.cast(c_.in(6), DType::i64)), m_.size(queries_)));
    }
    if (causal) allow(m_.op("LessOrEqual", {columns(), rows}));
    if (left >= 0) allow(m_.op("LessOrEqual", {m_.sub(rows, m_.scalar(DType::i64, double(left))), columns()}));
    if (right >= 0) allow(m_.op("LessOrEqual", {columns(), m_.add(rows, m_.scalar(DType::i64, double(right)))}));
    b.may_hide_rows = b.may_hide_rows || left >= 0 || c_.has(6);
  }

  OpContext& c_;
  const Compose& m_;
  DType dtype_;
  Dim queries_, keys_;
  V allowed_ = nullptr;
};

std::optional<DType> softmax_precision(OpContext& c) {
  if (!c.attribute("softmax_precision")) return std::nullopt;
  const auto onnx_type = static_cast<int32_t>(c.attr_int("softmax_precision", 1));
  const std::optional<DType> dtype = dtype_of(onnx_type);
  if (!dtype || !is_float(*dtype)) c.malformed("softmax_precision " + onnx_type_name(onnx_type) + " is no float type");
  return dtype;
}

/// query * scale times keys, transposed. 16-bit floats scale both by the root, so that products stay in range.
V scores_of(const Compose& m, V query, V keys, double scale) {
  if (size_of(query->type.dtype) >= 4) return m.matmul(m.mul(query, scale), keys, true);
  const double root = std::sqrt(scale);
  return m.matmul(m.mul(query, root), m.mul(keys, root), true);
}

void attention(OpContext& c) {
  const Compose m(c);
  V query = c.in(0), keys = c.in(1), values = c.in(2);
  const int rank = query->type.rank();
  if ((rank != 3 && rank != 4) || keys->type.rank() != rank || values->type.rank() != rank)
    c.malformed("Attention takes queries, keys and values of rank 3, or all of rank 4");
  if (c.has(4) != c.has(5)) c.malformed("Attention: past keys and values come together");
  if (c.has(4) && c.has(6)) c.malformed("Attention: nonpad_kv_seqlen cannot stand beside a past");
  if (rank == 3) {
    query = split_heads(c, m, query, c.attr_int("q_num_heads", 0));
    keys = split_heads(c, m, keys, c.attr_int("kv_num_heads", 0));
    values = split_heads(c, m, values, c.attr_int("kv_num_heads", 0));
  }
  if (c.has(4)) {
    keys = m.concat({c.in(4), keys}, 2);
    values = m.concat({c.in(5), values}, 2);
  }
  c.out(1, keys);
  c.out(2, values);
  const int64_t group = group_size(c, query->type.shape[1], keys->type.shape[1]);
  const Dim queries = query->type.shape[2], key_count = keys->type.shape[2];
  const DType dtype = query->type.dtype;

  const double scale = attr_scale(c).value_or(0) != 0 ? *attr_scale(c) : default_scale(c, query->type.shape[3]);
  const int64_t mode = c.attr_int("qk_matmul_output_mode", 0);
  V scores = scores_of(m, query, repeat_heads(m, keys, group), scale);
  if (mode == 0) c.out(3, scores);
  if (const double cap = c.attr_float("softcap", 0); cap > 0)
    scores = m.mul(m.op("Tanh", {m.mul(scores, 1 / cap)}), cap);
  if (mode == 1) c.out(3, scores);
  const Bias bias = Masks(c, m, query, queries, key_count).bias();
  if (bias.value) scores = m.add(scores, bias.value);
  if (mode == 2) c.out(3, scores);

  V weights = m.op("Softmax", {m.cast(scores, softmax_precision(c).value_or(dtype))}, {{"axis", int64_t{3}}});
  if (bias.may_hide_rows) {  // without any key: 0, not 0 / 0
    V most = m.reduce("ReduceMax", bias.value, {bias.value->type.rank() - 1});
    V hidden = m.op("Equal", {most, m.like(most, -kInfinity)});
    weights = m.where(hidden, m.like(weights, 0), weights);
  }
  weights = m.cast(weights, dtype);
  if (mode == 3) c.out(3, weights);
  V y = m.matmul(m.cast(weights, values->type.dtype), repeat_heads(m, values, group));
  y = m.cast(y, dtype);
  c.out(0, rank == 3 ? join_heads(m, y) : y);
}

void rotary_embedding(OpContext& c) {
  const Compose m(c);
  V x = c.in(0);
  const Shape original = x->type.shape;
  const int rank = x->type.rank();
  if (rank != 3 && rank != 4) c.malformed("RotaryEmbedding of rank " + std::to_string(rank));
  // As [B, S, heads, D].
  if (rank == 4) {
    x = m.transpose(x, {0, 2, 1, 3});
  } else {
    const int64_t heads = c.attr_int("num_heads", 0);
    if (heads <= 0) c.malformed("RotaryEmbedding of rank 3 needs num_heads");
    x = m.reshape(x, {original[0], original[1], Dim(heads), floordiv(original[2], Dim(heads))});
  }
  const Shape shape = x->type.shape;
  const int64_t given = c.attr_int("rotary_embedding_dim", 0);
  if (!given && !shape[3].is_const()) c.unsupported("RotaryEmbedding of a symbolic head size");
  const int64_t turned = given ? given : shape[3].value(), half = turned / 2;
  if (turned % 2 != 0 || turned < 0 || (shape[3].is_const() && turned > shape[3].value()))
    c.malformed("RotaryEmbedding of " + std::to_string(turned) + " columns");
  const bool interleaved = c.attr_int("interleaved", 0) != 0;

  const auto cache = [&](size_t i) {
    V table = c.in(i);
    if (c.has(3)) table = m.op("Gather", {table, c.in(3)}, {{"axis", int64_t{0}}});
    if (table->type.rank() != 3) c.malformed("RotaryEmbedding: a cache of another rank than 3 with positions applied");
    return m.unsqueeze(table, 2);  // [B, S, 1, half]
  };
  V cos = cache(1), sin = cache(2);
  V head = m.slice(x, 3, Dim(0), Dim(turned));
  V a = interleaved ? m.slice(head, 3, Dim(0), Dim(half), 2) : m.slice(head, 3, Dim(0), Dim(half));
  V b = interleaved ? m.slice(head, 3, Dim(1), Dim(half), 2) : m.slice(head, 3, Dim(half), Dim(half));
  V real = m.sub(m.mul(cos, a), m.mul(sin, b)), imaginary = m.add(m.mul(sin, a), m.mul(cos, b));
  V y = nullptr;
  if (interleaved) {
    y = m.concat({m.unsqueeze(real, 4), m.unsqueeze(imaginary, 4)}, 4);
    y = m.reshape(y, {shape[0], shape[1], shape[2], Dim(turned)});
  } else {
    y = m.concat({real, imaginary}, 3);
  }
  if (shape[3] != Dim(turned)) y = m.concat({y, m.slice(x, 3, Dim(turned), shape[3] - Dim(turned))}, 3);
  c.out(0, rank == 4 ? m.transpose(y, {0, 2, 1, 3}) : m.reshape(y, original));
}

/// present[b, .., w[b] + s, ..] = update[b, .., s, ..]: each position of the cache takes its update if it has one.
void tensor_scatter(OpContext& c) {
  const Compose m(c);
  V cache = c.in(0), update = c.in(1);
  const int rank = c.rank(0);
  if (c.rank(1) != rank || rank < 2) c.malformed("TensorScatter: cache and update need one rank, at least 2");
  const int64_t axis = c.axis(c.attr_int("axis", -2), rank);
  if (axis == 0) c.malformed("TensorScatter along the batch");
  const auto a = static_cast<size_t>(axis);
  const std::string mode = c.attr_string("mode", "linear");
  if (mode != "linear" && mode != "circular") c.malformed("TensorScatter: mode '" + mode + "' is not defined");
  const Dim length = cache->type.shape[a], count = update->type.shape[a];
  Shape along(static_cast<size_t>(rank), Dim(1)), batch(along);
  along[a] = length;
  batch[0] = cache->type.shape[0];
  V place = m.reshape(m.count(length), along);
  if (c.has(2)) {
    place = m.sub(place, m.reshape(m.cast(c.in(2), DType::i64), batch));
    if (mode == "circular") place = m.op("Mod", {place, m.size(length)});
  }
  V zero = m.scalar(DType::i64, 0);
  V written = m.op("And", {m.op("GreaterOrEqual", {place, zero}), m.op("Less", {place, m.size(count)})});
  V index = m.expand(m.where(written, place, zero), cache->type.shape);
  V taken = m.op("GatherElements", {update, index}, {{"axis", axis}});
  c.out(0, m.where(written, taken, cache));
}

/// a * sigmoid(alpha * a) * b
void swiglu(OpContext& c) {
  const Compose m(c);
  V gate = m.op("Silu", {c.in(0)}, {{"alpha", c.attr_float("alpha", 1)}});
  c.out(0, m.mul(gate, c.in(1)));
}

/// A depthwise convolution over time whose left context is kept between calls.
void causal_conv_with_state(OpContext& c) {
  const Compose m(c);
  V x = c.in(0), weight = c.in(1);
  if (c.rank(0) != 3 || c.rank(1) != 3) c.malformed("CausalConvWithState takes [N, C, L] and a weight [C, 1, K]");
  const Shape s = x->type.shape, w = weight->type.shape;
  if (!w[2].is_const() || !w[0].is_const()) c.unsupported("CausalConvWithState whose weight has no known size");
  const Dim context = w[2] - Dim(1);
  V past = c.has(3) ? c.in(3) : m.filled(x->type.dtype, 0, {s[0], s[1], context});
  V padded = m.concat({past, x}, 2);
  const Shape p = padded->type.shape;
  V y = m.op(
      "Conv2D",
      {m.reshape(padded, {p[0], p[1], Dim(1), p[2]}), m.reshape(weight, {w[0], w[1], Dim(1), w[2]}), c.in_or_null(2)},
      {{"groups", w[0].value()}});
  y = m.squeeze(y, 2);
  const std::string activation = c.attr_string("activation", "none");
  if (activation == "silu" || activation == "swish") {
    y = m.op("Silu", {y});
  } else if (activation != "none") {
    c.malformed("CausalConvWithState: activation '" + activation + "' is not defined");
  }
  c.out(0, y);
  c.out(1, m.slice(padded, 2, p[2] - context, context));
}

/// Computed in f32, as ONNX says.
void linear_attention(OpContext& c) {
  const Compose m(c);
  const int64_t query_heads = c.attr_int("q_num_heads", 0), heads = c.attr_int("kv_num_heads", 0);
  const std::string rule = c.attr_string("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta", delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear") c.malformed("LinearAttention: update_rule '" + rule + "' is not defined");
  if (gated != c.has(4) || delta != c.has(5))
    c.malformed("LinearAttention: decay and beta do not fit the update_rule '" + rule + "'");
  for (size_t i = 0; i < 6; ++i)
    if (i != 3 && c.has(i) && c.rank(i) != 3) c.malformed("LinearAttention takes inputs [B, T, heads * D]");
  const auto wide = [&](V v) { return m.cast(v, DType::f32); };
  const DType dtype = c.type(0).dtype;
  V query = split_heads(c, m, wide(c.in(0)), query_heads), key = split_heads(c, m, wide(c.in(1)), heads),
    value = split_heads(c, m, wide(c.in(2)), heads);
  const Dim batch = key->type.shape[0], rows = key->type.shape[3], columns = value->type.shape[3];
  V state = c.has(3) ? wide(c.in(3)) : m.filled(DType::f32, 0, {batch, Dim(heads), rows, columns});
  V decay = nullptr, beta = nullptr;
  if (gated) decay = split_heads(c, m, wide(c.in(4)), heads);
  if (delta) {
    const Dim width = c.type(5).shape[2];
    if (width != Dim(1) && width != Dim(heads)) c.malformed("LinearAttention: beta has " + width.str() + " columns");
    beta = split_heads(c, m, wide(c.in(5)), width.value());
  }
  double scale = c.attr_float("scale", 0);
  if (scale == 0) scale = default_scale(c, rows);
  ir::Node* node = c.b.add_node("LinearAttention", {query, key, value, state, decay, beta}, {{"scale", scale}});
  c.out(0, m.cast(join_heads(m, node->output(0)), dtype));
  c.out(1, m.cast(node->output(1), c.has(3) ? c.type(3).dtype : dtype));
}

const Mapping kMappings[] = {
    {"LinearAttention", linear_attention}, {"Attention", attention}, {"RotaryEmbedding", rotary_embedding},
    {"TensorScatter", tensor_scatter},     {"SwiGLU", swiglu},       {"CausalConvWithState", causal_conv_with_state},
};

}  // namespace

std::span<const Mapping> attention_mappings() { return kMappings; }

}  // namespace cuvil::frontends::onnx
