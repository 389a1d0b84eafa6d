// Arithmetic of floats. f16 and bf16 are computed in f32 and rounded, which equals rounding once for these operators.
#include "core/kernel/lane_ops.h"

namespace cuvil::kernel::lanes {
namespace {

template <class T>
void fma_narrow(void* out, const void* a, const void* b, const void* c, int n) {
  auto* o = static_cast<T*>(out);
  const auto *x = static_cast<const T*>(a), *y = static_cast<const T*>(b), *z = static_cast<const T*>(c);
  for (int i = 0; i < n; ++i) o[i] = T::round(fma_to_odd(x[i].value(), y[i].value(), z[i].value()));
}
template <class T>
void fma_wide(void* out, const void* a, const void* b, const void* c, int n) {
  auto* o = static_cast<T*>(out);
  const auto *x = static_cast<const T*>(a), *y = static_cast<const T*>(b), *z = static_cast<const T*>(c);
  for (int i = 0; i < n; ++i) o[i] = std::fma(x[i], y[i], z[i]);
}
#if defined(__x86_64__)
/// The same by the machine's instruction, where libm would be called for every lane.
template <class T>
__attribute__((target("avx2,fma"))) void fma_hardware(void* out, const void* a, const void* b, const void* c, int n) {
  auto* o = static_cast<T*>(out);
  const auto *x = static_cast<const T*>(a), *y = static_cast<const T*>(b), *z = static_cast<const T*>(c);
  for (int i = 0; i < n; ++i) o[i] = std::fma(x[i], y[i], z[i]);
}
#endif
template <class T>
LaneFn fma_lanes() {
  if constexpr (kNarrow<T>) {
    return fma_narrow<T>;
  } else {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2")) return fma_hardware<T>;
#endif
    return fma_wide<T>;
  }
}

/// a / b as the type holds it: floordiv and floormod floor the rounded quotient.
template <class T, class V>
V narrow_quotient(V a, V b) {
  if constexpr (kNarrow<T>) return T::round(a / b).value();
  return a / b;
}

template <class T>
LaneFn of(Op op) {
  switch (op) {
    case Op::add:
      return binary<T, T>([](auto a, auto b) { return a + b; });
    case Op::sub:
      return binary<T, T>([](auto a, auto b) { return a - b; });
    case Op::mul:
      return binary<T, T>([](auto a, auto b) { return a * b; });
    case Op::div:
      return binary<T, T>([](auto a, auto b) { return a / b; });
    case Op::floordiv:
      return binary<T, T>([](auto a, auto b) { return std::floor(narrow_quotient<T>(a, b)); });
    case Op::floormod:
      return binary<T, T>([](auto a, auto b) { return std::fma(-std::floor(narrow_quotient<T>(a, b)), b, a); });
    case Op::min:
      return binary<T, T>([](auto a, auto b) { return a != a ? a : b != b ? b : a < b ? a : b; });
    case Op::max:
      return binary<T, T>([](auto a, auto b) { return a != a ? a : b != b ? b : a > b ? a : b; });
    case Op::fma:
      return fma_lanes<T>();
    case Op::neg:
      return unary<T, T>([](auto a) { return -a; });
    case Op::abs:
      return unary<T, T>([](auto a) { return std::fabs(a); });
    case Op::sqrt:
      return unary<T, T>([](auto a) { return std::sqrt(a); });
    case Op::floor:
      return unary<T, T>([](auto a) { return std::floor(a); });
    case Op::ceil:
      return unary<T, T>([](auto a) { return std::ceil(a); });
    case Op::trunc:
      return unary<T, T>([](auto a) { return std::trunc(a); });
    case Op::round:
      return unary<T, T>([](auto a) { return std::nearbyint(a); });
    case Op::select:
      return selection<T>();
    default:
      return comparison<T>(op);
  }
}

}  // namespace

LaneFn float_function(Op op, DType dtype) {
  return with_float(dtype, [op]<class T>(Tag<T>) { return of<T>(op); });
}

}  // namespace cuvil::kernel::lanes
