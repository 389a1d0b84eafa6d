// Templates of lane_function(): one element at a time, on C++ types. Private to lane_ops_*.cpp.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "core/kernel/half.h"
#include "core/kernel/scalar.h"

namespace cuvil::kernel::lanes {

template <class T>
inline constexpr bool kNarrow = std::is_same_v<T, Half> || std::is_same_v<T, BFloat>;

/// The type arithmetic is done in, and the way there and back.
template <class T>
auto widen(T x) {
  if constexpr (kNarrow<T>) {
    return x.value();
  } else if constexpr (std::is_same_v<T, Bool>) {
    return x.bits != 0;
  } else {
    return x;
  }
}
template <class T, class V>
T narrow(V x) {
  if constexpr (kNarrow<T>) {
    return T::round(x);
  } else if constexpr (std::is_same_v<T, Bool>) {
    return Bool{static_cast<uint8_t>(x)};
  } else {
    return static_cast<T>(x);
  }
}

template <class T, class R, class F>
void map1(void* out, const void* a, int n, F f) {
  auto* o = static_cast<R*>(out);
  const auto* x = static_cast<const T*>(a);
  if (n == 1) {
    *o = narrow<R>(f(widen(*x)));
    return;
  }
  for (int i = 0; i < n; ++i) o[i] = narrow<R>(f(widen(x[i])));
}
template <class T, class R, class F>
void map2(void* out, const void* a, const void* b, int n, F f) {
  auto* o = static_cast<R*>(out);
  const auto* x = static_cast<const T*>(a);
  const auto* y = static_cast<const T*>(b);
  if (n == 1) {
    *o = narrow<R>(f(widen(*x), widen(*y)));
    return;
  }
  for (int i = 0; i < n; ++i) o[i] = narrow<R>(f(widen(x[i]), widen(y[i])));
}

/// Wraps F (a stateless callable) into a LaneFn of one or two operands of T with result R.
template <class T, class R, class F>
LaneFn unary(F) {
  return [](void* o, const void* a, const void*, const void*, int n) { map1<T, R>(o, a, n, F{}); };
}
template <class T, class R, class F>
LaneFn binary(F) {
  return [](void* o, const void* a, const void* b, const void*, int n) { map2<T, R>(o, a, b, n, F{}); };
}

template <class T>
LaneFn comparison(Op op) {
  switch (op) {
    case Op::eq:
      return binary<T, Bool>([](auto a, auto b) { return a == b; });
    case Op::ne:
      return binary<T, Bool>([](auto a, auto b) { return a != b; });
    case Op::lt:
      return binary<T, Bool>([](auto a, auto b) { return a < b; });
    case Op::le:
      return binary<T, Bool>([](auto a, auto b) { return a <= b; });
    case Op::gt:
      return binary<T, Bool>([](auto a, auto b) { return a > b; });
    case Op::ge:
      return binary<T, Bool>([](auto a, auto b) { return a >= b; });
    default:
      return nullptr;
  }
}

template <class T>
LaneFn selection() {
  return [](void* out, const void* a, const void* b, const void* c, int n) {
    auto* o = static_cast<T*>(out);
    const auto* cond = static_cast<const Bool*>(a);
    const auto *x = static_cast<const T*>(b), *y = static_cast<const T*>(c);
    for (int i = 0; i < n; ++i) o[i] = cond[i].bits ? x[i] : y[i];
  };
}

template <class T>
struct Tag {
  using type = T;
};
/// f(Tag<T>{}) for the type T of a float dtype; null for other dtypes.
template <class F>
LaneFn with_float(DType dtype, F f) {
  switch (dtype) {
    case DType::f32:
      return f(Tag<float>{});
    case DType::f64:
      return f(Tag<double>{});
    case DType::f16:
      return f(Tag<Half>{});
    case DType::bf16:
      return f(Tag<BFloat>{});
    default:
      return nullptr;
  }
}

LaneFn float_function(Op op, DType dtype);
LaneFn math_function(Op op, DType dtype);
LaneFn integer_function(Op op, DType dtype);

}  // namespace cuvil::kernel::lanes
