// Arithmetic of integers and bool: everything is defined; sums and products wrap, dividing by zero gives zero.
#include "core/kernel/lane_ops.h"

namespace cuvil::kernel::lanes {
namespace {

/// Wrapping arithmetic is done in 64 unsigned bits and cut by the result's type.
template <class T>
uint64_t u(T x) {
  return static_cast<uint64_t>(x);
}
/// a / b toward zero; b = -1 is split off since the smallest number has no negative.
template <class T>
T quotient(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return static_cast<T>(0 - u(a));
  }
  return static_cast<T>(a / b);
}
template <class T>
T remainder(T a, T b) {
  return b == 0 ? T{0} : static_cast<T>(u(a) - u(quotient(a, b)) * u(b));
}
template <class T>
bool rounds_down(T a, T b) {
  if constexpr (!std::is_signed_v<T>) {
    return false;
  } else {
    return remainder(a, b) != 0 && (remainder(a, b) < 0) != (b < 0);
  }
}

template <class T>
LaneFn shift(Op op) {
  if (op == Op::shl)
    return binary<T, T>([](auto a, auto b) { return u(b) >= 8 * sizeof(T) ? T{0} : static_cast<T>(u(a) << u(b)); });
  return binary<T, T>([](auto a, auto b) {
    if (u(b) < 8 * sizeof(T)) return static_cast<T>(a >> u(b));
    return static_cast<T>(a < T{0} ? -1 : 0);
  });
}

template <class T>
LaneFn of(Op op) {
  switch (op) {
    case Op::add:
      return binary<T, T>([](auto a, auto b) { return static_cast<T>(u(a) + u(b)); });
    case Op::sub:
      return binary<T, T>([](auto a, auto b) { return static_cast<T>(u(a) - u(b)); });
    case Op::mul:
      return binary<T, T>([](auto a, auto b) { return static_cast<T>(u(a) * u(b)); });
    case Op::div:
      return binary<T, T>([](auto a, auto b) { return quotient<T>(a, b); });
    case Op::floordiv:
      return binary<T, T>([](auto a, auto b) { return static_cast<T>(u(quotient<T>(a, b)) - rounds_down<T>(a, b)); });
    case Op::floormod:
      return binary<T, T>(
          [](auto a, auto b) { return static_cast<T>(u(remainder<T>(a, b)) + (rounds_down<T>(a, b) ? u(b) : 0)); });
    case Op::min:
      return binary<T, T>([](auto a, auto b) { return b < a ? b : a; });
    case Op::max:
      return binary<T, T>([](auto a, auto b) { return b > a ? b : a; });
    case Op::fma:
      return [](void* out, const void* a, const void* b, const void* c, int n) {
        auto* o = static_cast<T*>(out);
        const auto *x = static_cast<const T*>(a), *y = static_cast<const T*>(b), *z = static_cast<const T*>(c);
        for (int i = 0; i < n; ++i) o[i] = static_cast<T>(u(x[i]) * u(y[i]) + u(z[i]));
      };
    case Op::neg:
      return unary<T, T>([](auto a) { return static_cast<T>(0 - u(a)); });
    case Op::abs:
      return unary<T, T>([](auto a) { return a < T{0} ? static_cast<T>(0 - u(a)) : a; });
    case Op::bit_and:
      return binary<T, T>([](auto a, auto b) { return static_cast<T>(a & b); });
    case Op::bit_or:
      return binary<T, T>([](auto a, auto b) { return static_cast<T>(a | b); });
    case Op::bit_xor:
      return binary<T, T>([](auto a, auto b) { return static_cast<T>(a ^ b); });
    case Op::bit_not:
      return unary<T, T>([](auto a) { return static_cast<T>(~u(a)); });
    case Op::shl:
    case Op::shr:
      return shift<T>(op);
    case Op::select:
      return selection<T>();
    default:
      return comparison<T>(op);
  }
}

LaneFn of_bool(Op op) {
  switch (op) {
    case Op::bit_and:
      return binary<Bool, Bool>([](bool a, bool b) { return a && b; });
    case Op::bit_or:
      return binary<Bool, Bool>([](bool a, bool b) { return a || b; });
    case Op::bit_xor:
      return binary<Bool, Bool>([](bool a, bool b) { return a != b; });
    case Op::bit_not:
      return unary<Bool, Bool>([](bool a) { return !a; });
    case Op::select:
      return selection<Bool>();
    default:
      return comparison<Bool>(op);
  }
}

}  // namespace

LaneFn integer_function(Op op, DType dtype) {
  switch (dtype) {
    case DType::i64:
      return of<int64_t>(op);
    case DType::i32:
      return of<int32_t>(op);
    case DType::i16:
      return of<int16_t>(op);
    case DType::i8:
      return of<int8_t>(op);
    case DType::u64:
      return of<uint64_t>(op);
    case DType::u32:
      return of<uint32_t>(op);
    case DType::u16:
      return of<uint16_t>(op);
    case DType::u8:
      return of<uint8_t>(op);
    case DType::boolean:
      return of_bool(op);
    default:
      return nullptr;
  }
}

}  // namespace cuvil::kernel::lanes
