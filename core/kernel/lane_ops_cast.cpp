// Casts between all element types.
#include "core/kernel/lane_ops.h"

namespace cuvil::kernel {
namespace {

/// Truncates and saturates; NaN gives 0.
template <class To, class V>
To saturate(V x) {
  using Limits = std::numeric_limits<To>;
  if (x != x) return 0;
  // The bounds as floats: max may round up to a power of two, which is the first number that does not fit.
  constexpr V kLow = static_cast<V>(Limits::min()), kHigh = static_cast<V>(Limits::max());
  if (x <= kLow) return Limits::min();
  if (x >= kHigh) return Limits::max();
  return static_cast<To>(x);
}

template <class To, class From>
To convert(From from) {
  const auto x = lanes::widen(from);
  using V = std::remove_const_t<decltype(x)>;
  if constexpr (std::is_same_v<To, Bool>) {
    return Bool{x != 0};
  } else if constexpr (lanes::kNarrow<To>) {
    if constexpr (std::is_floating_point_v<V>) {
      return To::round(x);
    } else {
      const bool negative = x < V{0};
      const double magnitude = to_odd_double(negative ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x));
      return To::round(negative ? -magnitude : magnitude);
    }
  } else if constexpr (std::is_floating_point_v<V> && std::is_integral_v<To>) {
    return saturate<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <class To, class From>
void convert_lanes(void* out, const void* a, const void*, const void*, int n) {
  auto* o = static_cast<To*>(out);
  const auto* x = static_cast<const From*>(a);
  for (int i = 0; i < n; ++i) o[i] = convert<To>(x[i]);
}

template <class F>
LaneFn with_type(DType dtype, F f) {
  switch (dtype) {
    case DType::i64:
      return f(lanes::Tag<int64_t>{});
    case DType::i32:
      return f(lanes::Tag<int32_t>{});
    case DType::i16:
      return f(lanes::Tag<int16_t>{});
    case DType::i8:
      return f(lanes::Tag<int8_t>{});
    case DType::u64:
      return f(lanes::Tag<uint64_t>{});
    case DType::u32:
      return f(lanes::Tag<uint32_t>{});
    case DType::u16:
      return f(lanes::Tag<uint16_t>{});
    case DType::u8:
      return f(lanes::Tag<uint8_t>{});
    case DType::boolean:
      return f(lanes::Tag<Bool>{});
    default:
      return lanes::with_float(dtype, f);
  }
}

}  // namespace

LaneFn cast_function(DType to, DType from) {
  return with_type(to, [from]<class To>(lanes::Tag<To>) {
    return with_type(from, []<class From>(lanes::Tag<From>) -> LaneFn { return convert_lanes<To, From>; });
  });
}

}  // namespace cuvil::kernel
