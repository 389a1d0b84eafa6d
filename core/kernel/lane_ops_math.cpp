// Transcendentals: computed in double by libm and rounded once to the type.
#include "core/kernel/lane_ops.h"

namespace cuvil::kernel::lanes {
namespace {

template <class T>
LaneFn of(Op op) {
#define CUVIL_MATH(name) \
  case Op::name:         \
    return unary<T, T>([](auto x) { return std::name(static_cast<double>(x)); });
  switch (op) {
    CUVIL_MATH(exp)
    CUVIL_MATH(log)
    CUVIL_MATH(tanh)
    CUVIL_MATH(erf)
    CUVIL_MATH(sin)
    CUVIL_MATH(cos)
    CUVIL_MATH(tan)
    CUVIL_MATH(asin)
    CUVIL_MATH(acos)
    CUVIL_MATH(atan)
    CUVIL_MATH(sinh)
    CUVIL_MATH(cosh)
    CUVIL_MATH(asinh)
    CUVIL_MATH(acosh)
    CUVIL_MATH(atanh)
    case Op::sigmoid:
      return unary<T, T>([](auto x) { return 1 / (1 + std::exp(-static_cast<double>(x))); });
    case Op::pow:
      return binary<T, T>([](auto a, auto b) { return std::pow(static_cast<double>(a), static_cast<double>(b)); });
    default:
      return nullptr;
  }
#undef CUVIL_MATH
}

}  // namespace

LaneFn math_function(Op op, DType dtype) {
  return with_float(dtype, [op]<class T>(Tag<T>) { return of<T>(op); });
}

}  // namespace cuvil::kernel::lanes
