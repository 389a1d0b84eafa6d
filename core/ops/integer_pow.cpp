#include "core/ops/define.h"
#include "core/ops/loops.h"

namespace cuvil::ops {
namespace {

using kernel::Expr;

/// By squaring, a bit of the exponent after the other.
void lower_integer_pow(LowerContext& c) {
  const kernel::Type type{c.in_type(0).dtype, 1}, i64{DType::i64, 1};
  for_each(c, c.out_memory().type(), {}, [&](const Coords& at) {
    const auto operand = [&](size_t i) {
      return c.load(i, broadcast_coords(at, c.out_type().shape, c.in_type(i).shape));
    };
    const Expr base = c.b().let("base", operand(0)), exponent = c.b().let("exponent", kernel::cast(i64, operand(1)));
    const Expr one = kernel::constant(base.type(), 1), zero = kernel::constant(base.type(), 0);
    const Expr bit = kernel::constant(exponent.type(), 1);
    Register result(c.b(), "result", one), square(c.b(), "square", base), rest(c.b(), "rest", exponent);
    c.b().loop("i", 63, [&](Expr) {
      const Expr factor = kernel::select((rest.get() & bit) == bit, square.get(), one);
      result.set(result.get() * factor);
      square.set(square.get() * square.get());
      rest.set(kernel::make(kernel::Op::shr, {rest.get(), bit}));
    });
    // 1 / base^n is an integer for 1 and -1 only.
    Expr inverse = kernel::select(base == one, one, zero);
    if (is_signed_int(type.dtype))
      inverse = kernel::select(base == -one, kernel::select((exponent & bit) == bit, base, one), inverse);
    c.store(at, kernel::select(exponent < kernel::constant(exponent.type(), 0), inverse, result.get()));
  });
}

}  // namespace

OpDef define_integer_pow() {
  OpDef d = binary("IntegerPow", "y = a^b of integers, wrapping; for a negative b it is 0 unless a is 1 or -1.",
                   int_dtypes());
  d.traits = kPure | kEpilogueOk;
  d.infer = [](const InferContext& c) {
    if (!is_int(c.in(1).dtype)) c.fail("the exponent must be an integer");
    return std::vector<ir::Type>{{c.in(0).dtype, broadcast(c, c.in(0).shape, c.in(1).shape), {}}};
  };
  d.lower = lower_integer_pow;
  d.samples = [] {
    const auto i32 = [](Shape s) { return of(DType::i32, std::move(s)); };
    return std::vector<Sample>{
        {"by_hand",
         {i32({7}), i64({7})},
         {},
         {{2, -3, 7, 0, -1, 1, 2}, {10, 3, 0, 0, -3, -5, -1}},
         {1024, -27, 1, 1, -1, 1, 0}},
        {"broadcast", {i64({3, 1, 17}), of(DType::u8, {5, 1})}},
        {"unsigned", {of(DType::u8, {3}), of(DType::i8, {3})}, {}, {{2, 255, 3}, {8, 3, 4}}, {0, 255, 81}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
