// Signals: windows, Fourier transforms as products with matrices of sines and cosines, mel filters.
#include <cmath>
#include <numbers>

#include "core/frontends/onnx/compose.h"

namespace cuvil::frontends::onnx {
namespace {

using V = Compose::V;
/// The matrices of longer transforms would weigh more than a model.
constexpr int64_t kLongest = 4096;
constexpr double kPi = std::numbers::pi;

DType output_dtype(OpContext& c) {
  const auto onnx_type = static_cast<int32_t>(c.attr_int("output_datatype", 1));
  const std::optional<DType> dtype = dtype_of(onnx_type);
  if (!dtype) c.unsupported(std::string(c.proto.op_type) + " of " + onnx_type_name(onnx_type));
  return *dtype;
}

/// a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N)
void cosine_window(OpContext& c, double a0, double a1, double a2) {
  const double size = c.number(0, "the size");
  if (!(size >= 0 && size <= (1 << 24))) c.unsupported(std::string(c.proto.op_type) + " of this size");
  const auto count = static_cast<int64_t>(size);
  const double n = c.attr_int("periodic", 1) != 0 ? size : size - 1;
  std::vector<float> w;
  for (int64_t i = 0; i < count; ++i) {
    const double t = 2 * kPi * static_cast<double>(i) / n;
    w.push_back(static_cast<float>(a0 - a1 * std::cos(t) + a2 * std::cos(2 * t)));
  }
  const Compose m(c);
  c.out(0, m.cast(m.floats({Dim(count)}, w), output_dtype(c)));
}
void hann(OpContext& c) { cosine_window(c, 0.5, 0.5, 0); }
void hamming(OpContext& c) { cosine_window(c, 25.0 / 46.0, 21.0 / 46.0, 0); }
void blackman(OpContext& c) { cosine_window(c, 0.42, 0.5, 0.08); }

/// Triangles between equidistant points of the mel scale, at the bins of a transform.
void mel_weight_matrix(OpContext& c) {
  const auto bins = static_cast<int64_t>(c.number(0, "the number of bins"));
  const auto length = static_cast<int64_t>(c.number(1, "the length"));
  const double rate = c.number(2, "the rate"), low = c.number(3, "the lower edge"),
               high = c.number(4, "the upper edge");
  if (bins < 1 || length < 1 || bins > (1 << 16) || length > (1 << 20)) c.unsupported("MelWeightMatrix of these sizes");
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const auto hertz = [](double m) { return 700 * (std::pow(10, m / 2595) - 1); };
  const int64_t rows = length / 2 + 1;
  std::vector<int64_t> edges;
  const double step = (mel(high) - mel(low)) / static_cast<double>(bins + 2);  // as ONNX's reference counts
  for (int64_t i = 0; i < bins + 2; ++i)
    edges.push_back(static_cast<int64_t>(
        std::floor(static_cast<double>(length + 1) * hertz(static_cast<double>(i) * step + mel(low)) / rate)));
  std::vector<float> w(static_cast<size_t>(rows * bins), 0.0F);
  const auto put = [&](int64_t row, int64_t bin, double value) {
    if (row >= 0 && row < rows) w[static_cast<size_t>(row * bins + bin)] = static_cast<float>(value);
  };
  for (int64_t i = 0; i < bins; ++i) {
    const int64_t begin = edges[size_t(i)], middle = edges[size_t(i + 1)], end = edges[size_t(i + 2)];
    if (middle == begin)
      put(middle, i, 1);
    else
      for (int64_t j = begin; j <= middle; ++j) put(j, i, double(j - begin) / double(middle - begin));
    for (int64_t j = middle; end > middle && j < end; ++j) put(j, i, double(end - j) / double(end - middle));
  }
  const Compose m(c);
  c.out(0, m.cast(m.floats({Dim(rows), Dim(bins)}, w), output_dtype(c)));
}

struct Complex {
  V real, imaginary;  ///< imaginary: null for 0
};

/// cos and sin of 2 pi row column / length.
struct Waves {
  V cos, sin;
};
Waves waves(const Compose& m, int64_t rows, int64_t columns, int64_t length, double scale) {
  std::vector<float> c, s;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t k = 0; k < columns; ++k) {
      const double t = 2 * kPi * static_cast<double>(r * k % length) / static_cast<double>(length);
      c.push_back(static_cast<float>(scale * std::cos(t)));
      s.push_back(static_cast<float>(scale * std::sin(t)));
    }
  }
  return {m.floats({Dim(rows), Dim(columns)}, c), m.floats({Dim(rows), Dim(columns)}, s)};
}

/// The transform of length `length` of the last axis, `taken` elements of it; sign -1: forward, +1: backward.
Complex transform(const Compose& m, Complex x, int64_t length, int64_t taken, int sign, double scale) {
  const Shape shape = x.real->type.shape;
  const auto axis = static_cast<int64_t>(shape.size()) - 1;
  const int64_t given = std::min(shape.back().value(), length);  // shorter: as if zeros followed
  const auto cut = [&](V v) {
    return v && v->type.shape.back() != Dim(given) ? m.slice(v, axis, Dim(0), Dim(given)) : v;
  };
  x = {cut(x.real), cut(x.imaginary)};
  const DType dtype = x.real->type.dtype;
  const Waves w = waves(m, given, taken, length, scale);
  V cos = m.cast(w.cos, dtype), sin = m.cast(w.sin, dtype);
  V real = m.matmul(x.real, cos), imaginary = m.mul(m.matmul(x.real, sin), sign);
  if (x.imaginary) {
    V cross = m.mul(m.matmul(x.imaginary, sin), -sign);
    real = m.add(real, cross);
    imaginary = m.add(imaginary, m.matmul(x.imaginary, cos));
  }
  return {real, imaginary};
}

/// [..., 1 or 2] as real and imaginary parts.
Complex parts(OpContext& c, const Compose& m, V x) {
  const Shape& shape = x->type.shape;
  const auto last = static_cast<int64_t>(shape.size()) - 1;
  if (shape.back() == Dim(1)) return {m.squeeze(x, last), nullptr};
  if (shape.back() != Dim(2)) c.malformed(std::string(c.proto.op_type) + ": the last axis must be 1 or 2 long");
  const auto part = [&](int64_t i) { return m.squeeze(m.slice(x, last, Dim(i), Dim(1)), last); };
  return {part(0), part(1)};
}

V join(const Compose& m, const Complex& x) {
  const auto last = static_cast<int64_t>(x.real->type.shape.size());
  return m.concat({m.unsqueeze(x.real, last), m.unsqueeze(x.imaginary, last)}, last);
}

int64_t checked_length(OpContext& c, int64_t length) {
  if (length < 1) c.malformed(std::string(c.proto.op_type) + " of length " + std::to_string(length));
  if (length > kLongest)
    c.unsupported(std::string(c.proto.op_type) + " of length " + std::to_string(length) + "; at most " +
                  std::to_string(kLongest) + " are supported");
  return length;
}

/// Weights of a one-sided spectrum: bins other than 0 and length / 2 stand for two.
V one_sided_weights(const Compose& m, int64_t bins, int64_t length) {
  std::vector<float> w(static_cast<size_t>(bins), 2.0F);
  w[0] = 1;
  if (length % 2 == 0 && bins == length / 2 + 1) w.back() = 1;
  return m.floats({Dim(bins)}, w);
}

void dft(OpContext& c) {
  const Compose m(c);
  const int rank = c.rank(0);
  if (rank < 2) c.malformed("DFT of rank " + std::to_string(rank));
  int64_t axis = c.attr_int("axis", 1);
  if (c.opset >= 20) axis = c.has(2) ? static_cast<int64_t>(c.number(2, "the axis")) : -2;
  axis = c.axis(axis, rank);
  if (axis == rank - 1) c.malformed("DFT along the axis of real and imaginary parts");
  const bool inverse = c.attr_int("inverse", 0) != 0, one_sided = c.attr_int("onesided", 0) != 0;
  const Dim extent = c.type(0).shape[static_cast<size_t>(axis)];
  if (!extent.is_const()) c.unsupported("DFT along an axis of " + extent.str());
  int64_t length = inverse && one_sided ? 2 * (extent.value() - 1) : extent.value();
  if (c.has(1)) length = static_cast<int64_t>(c.number(1, "the length"));
  checked_length(c, length);

  // The axis goes to the end.
  std::vector<int64_t> perm, back;
  for (int64_t a = 0; a < rank - 1; ++a)
    if (a != axis) perm.push_back(a);
  perm.push_back(axis);
  for (int64_t a = 0; a < rank - 1; ++a) back.push_back(std::find(perm.begin(), perm.end(), a) - perm.begin());
  Complex x = parts(c, m, c.in(0));
  x.real = m.transpose(x.real, perm);
  if (x.imaginary) x.imaginary = m.transpose(x.imaginary, perm);
  const double scale = inverse ? 1.0 / static_cast<double>(length) : 1.0;
  if (inverse && one_sided) {  // the other half of the spectrum is the conjugate: the result is real
    const int64_t bins = std::min(extent.value(), length / 2 + 1);
    V w = m.cast(one_sided_weights(m, bins, length), x.real->type.dtype);
    const auto weighted = [&](V v) { return v ? m.mul(m.slice(v, rank - 2, Dim(0), Dim(bins)), w) : v; };
    const Complex y = transform(m, {weighted(x.real), weighted(x.imaginary)}, length, length, 1, scale);
    return c.out(0, m.unsqueeze(m.transpose(y.real, back), rank - 1));
  }
  const int64_t taken = one_sided ? length / 2 + 1 : length;
  Complex y = transform(m, x, length, taken, inverse ? 1 : -1, scale);
  y = {m.transpose(y.real, back), m.transpose(y.imaginary, back)};
  c.out(0, join(m, y));
}

/// Frames of the signal, each times the window, each transformed.
void stft(OpContext& c) {
  const Compose m(c);
  V signal = c.in(0);
  if (signal->type.rank() == 2) signal = m.unsqueeze(signal, 2);
  if (signal->type.rank() != 3) c.malformed("STFT of rank " + std::to_string(c.rank(0)));
  const auto step = static_cast<int64_t>(c.number(1, "the step"));
  V window = c.in_or_null(2);
  const Dim total = signal->type.shape[1];
  Dim wanted = window ? window->type.shape[0] : Dim(0);
  if (c.has(3)) wanted = Dim(static_cast<int64_t>(c.number(3, "the frame's length")));
  if (!window && !c.has(3)) c.malformed("STFT needs a window or a frame's length");
  if (!total.is_const() || !wanted.is_const()) c.unsupported("STFT of a signal or window of symbolic length");
  const int64_t length = checked_length(c, wanted.value());
  if (step < 1 || length > total.value()) c.malformed("STFT: the frames do not fit the signal");
  const int64_t frames = (total.value() - length) / step + 1;
  std::vector<int64_t> index;
  for (int64_t f = 0; f < frames; ++f)
    for (int64_t i = 0; i < length; ++i) index.push_back(f * step + i);
  V at = m.reshape(c.ints_constant(index), {Dim(frames), Dim(length)});
  Complex x = parts(c, m, signal);
  const auto frame = [&](V v) {
    if (!v) return v;
    v = m.op("Gather", {v, at}, {{"axis", int64_t{1}}});
    return window ? m.mul(v, m.cast(window, v->type.dtype)) : v;
  };
  const int64_t taken = c.attr_int("onesided", 1) != 0 ? length / 2 + 1 : length;
  c.out(0, join(m, transform(m, {frame(x.real), frame(x.imaginary)}, length, taken, -1, 1)));
}

const Mapping kMappings[] = {
    {"HannWindow", hann},
    {"HammingWindow", hamming},
    {"BlackmanWindow", blackman},
    {"MelWeightMatrix", mel_weight_matrix},
    {"DFT", dft},
    {"STFT", stft},
};

}  // namespace

std::span<const Mapping> signal_mappings() { return kMappings; }

}  // namespace cuvil::frontends::onnx
