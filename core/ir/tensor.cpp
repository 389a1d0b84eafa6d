#include "core/ir/tensor.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/base/error.h"

namespace cuvil::ir {
namespace {

double half_to_double(uint16_t h) {
  const int sign = h >> 15, exponent = (h >> 10) & 31, mantissa = h & 1023;
  double v;
  if (exponent == 0)
    v = std::ldexp(static_cast<double>(mantissa), -24);
  else if (exponent == 31)
    v = mantissa ? std::nan("") : INFINITY;
  else
    v = std::ldexp(static_cast<double>(mantissa + 1024), exponent - 25);
  return sign ? -v : v;
}

/// Round to nearest, ties to even.
uint16_t half_from_double(double v) {
  const uint16_t sign = std::signbit(v) ? 0x8000 : 0;
  v = std::fabs(v);
  if (std::isnan(v)) return sign | 0x7e00;
  if (v >= 65520) return sign | 0x7c00;
  int exponent = 0;
  std::frexp(v, &exponent);
  const int shift = v == 0 ? -24 : std::max(exponent - 11, -24);  // of the last bit kept
  const double scaled = std::nearbyint(std::ldexp(v, -shift));
  // Adding lets a mantissa that rounds up to 2048 carry into the exponent.
  const int bits = shift == -24 ? static_cast<int>(scaled) : ((shift + 24) << 10) + static_cast<int>(scaled);
  return static_cast<uint16_t>(sign | bits);
}

uint16_t bfloat_from_float(float v) {
  uint32_t bits = 0;
  std::memcpy(&bits, &v, 4);
  if (std::isnan(v)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <class T>
T element(const uint8_t* bytes, int64_t i) {
  T v;
  std::memcpy(&v, bytes + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return v;
}

/// Floats saturate as integers, NaN is 0: as Kernel IR casts.
int64_t to_integer(double v) {
  if (std::isnan(v)) return 0;
  if (v >= 0x1p63) return std::numeric_limits<int64_t>::max();
  if (v < -0x1p63) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(v);
}

template <class R, class V>
R convert(V v) {
  if constexpr (std::is_integral_v<R> && std::is_floating_point_v<V>)
    return to_integer(static_cast<double>(v));
  else
    return static_cast<R>(v);
}

template <class R>
R element_as(const Tensor& t, int64_t i) {
  const uint8_t* p = t.raw();
  switch (t.type.dtype) {
    case DType::f32:
      return convert<R>(element<float>(p, i));
    case DType::f64:
      return convert<R>(element<double>(p, i));
    case DType::f16:
      return convert<R>(half_to_double(element<uint16_t>(p, i)));
    case DType::bf16: {
      const uint32_t bits = static_cast<uint32_t>(element<uint16_t>(p, i)) << 16;
      float f;
      std::memcpy(&f, &bits, 4);
      return convert<R>(f);
    }
    case DType::i64:
      return convert<R>(element<int64_t>(p, i));
    case DType::i32:
      return convert<R>(element<int32_t>(p, i));
    case DType::i16:
      return convert<R>(element<int16_t>(p, i));
    case DType::i8:
      return convert<R>(element<int8_t>(p, i));
    case DType::u64:
      return convert<R>(element<uint64_t>(p, i));
    case DType::u32:
      return convert<R>(element<uint32_t>(p, i));
    case DType::u16:
      return convert<R>(element<uint16_t>(p, i));
    case DType::u8:
      return convert<R>(element<uint8_t>(p, i));
    case DType::boolean:
      return convert<R>(element<uint8_t>(p, i) != 0);
  }
  return R{};
}

}  // namespace

int64_t Tensor::bytes() const { return type.bytes().value(); }
double Tensor::as_double(int64_t i) const { return element_as<double>(*this, i); }
int64_t Tensor::as_int(int64_t i) const { return element_as<int64_t>(*this, i); }

std::vector<int64_t> Tensor::to_ints() const {
  std::vector<int64_t> out(static_cast<size_t>(num_elements(type.shape).value()));
  for (size_t i = 0; i < out.size(); ++i) out[i] = as_int(static_cast<int64_t>(i));
  return out;
}

std::pair<Tensor, uint8_t*> Tensor::allocate(Type type) {
  const auto bytes = static_cast<size_t>(type.bytes().value());
  const size_t rounded = (bytes + 63) / 64 * 64;
  void* p = std::aligned_alloc(64, rounded ? rounded : 64);
  if (!p)
    throw Error(CUVIL_TARGET_ERROR, "out of memory: cannot allocate " + std::to_string(bytes) + " bytes for a tensor");
  return {
      Tensor{std::move(type), std::shared_ptr<const void>(p, [](const void* q) { std::free(const_cast<void*>(q)); })},
      static_cast<uint8_t*>(p)};
}

Tensor Tensor::from_bytes(Type type, std::vector<uint8_t> bytes) {
  CUVIL_CHECK(static_cast<int64_t>(bytes.size()) == type.bytes().value(), "a tensor's bytes fit its type");
  auto [tensor, to] = allocate(std::move(type));
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  return tensor;
}

Tensor Tensor::from_ints(const std::vector<int64_t>& values) {
  auto [tensor, to] = allocate({DType::i64, {Dim(static_cast<int64_t>(values.size()))}, {}});
  if (!values.empty()) std::memcpy(to, values.data(), values.size() * 8);
  return tensor;
}

Tensor Tensor::from_floats(Shape shape, const std::vector<float>& values) {
  auto [tensor, to] = allocate({DType::f32, std::move(shape), {}});
  CUVIL_CHECK(static_cast<size_t>(tensor.bytes()) == values.size() * 4, "a tensor's values fit its shape");
  if (!values.empty()) std::memcpy(to, values.data(), values.size() * 4);
  return tensor;
}

Tensor Tensor::scalar(DType dtype, double value) {
  auto [tensor, to] = allocate({dtype, {}, {}});
  auto put = [to = to](auto v) { std::memcpy(to, &v, sizeof v); };
  const int64_t integer = to_integer(value);
  switch (size_of(dtype)) {
    case 8:
      dtype == DType::f64 ? put(value) : put(integer);
      break;
    case 4:
      dtype == DType::f32 ? put(static_cast<float>(value)) : put(static_cast<int32_t>(integer));
      break;
    case 2:
      if (dtype == DType::f16)
        put(half_from_double(value));
      else if (dtype == DType::bf16)
        put(bfloat_from_float(static_cast<float>(value)));
      else
        put(static_cast<int16_t>(integer));
      break;
    default:
      put(dtype == DType::boolean ? static_cast<uint8_t>(value != 0) : static_cast<uint8_t>(integer));
  }
  return tensor;
}

bool equal(const Tensor& a, const Tensor& b) {
  if (!(a.type == b.type)) return false;
  const int64_t n = a.bytes();
  return a.raw() == b.raw() || n == 0 || std::memcmp(a.raw(), b.raw(), static_cast<size_t>(n)) == 0;
}

}  // namespace cuvil::ir
