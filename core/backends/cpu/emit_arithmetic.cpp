// Arithmetic, comparisons, bits: what ir.h's table says, in LLVM IR. No fast-math flag is ever set.
#include <llvm/IR/Constants.h>

#include "core/backends/cpu/emitter.h"
#include "core/base/error.h"
#include "core/kernel/scalar.h"

namespace cuvil::backends::cpu {

using kernel::Op;

namespace {

/// The scalar constant of an LLVM value, splats included; null if there is none.
const llvm::Constant* scalar_constant(llvm::Value* v) {
  auto* c = llvm::dyn_cast<llvm::Constant>(v);
  return c && c->getType()->isVectorTy() ? c->getSplatValue() : c;
}
const llvm::APInt* int_constant(llvm::Value* v) {
  auto* c = llvm::dyn_cast_or_null<llvm::ConstantInt>(scalar_constant(v));
  return c ? &c->getValue() : nullptr;
}
bool is_known_number(llvm::Value* v) {
  auto* c = llvm::dyn_cast_or_null<llvm::ConstantFP>(scalar_constant(v));
  return c && !c->isNaN();
}

bool is_narrow(DType t) { return t == DType::f16 || t == DType::bf16; }
bool compares(Op op) { return op >= Op::eq && op <= Op::ge; }

}  // namespace

Emitter::Value* Emitter::intrinsic(llvm::Intrinsic::ID id, std::span<Value* const> v) {
  return b_.CreateIntrinsic(id, {v[0]->getType()}, llvm::ArrayRef<Value*>(v.data(), v.size()));
}

Emitter::Value* Emitter::operate(Op op, DType dtype, std::span<Value* const> v) {
  if (compares(op)) return compare(op, dtype, v[0], v[1]);
  if (!is_float(dtype)) return int_operate(op, is_signed_int(dtype), v);
  if (!is_narrow(dtype)) return float_operate(op, v, dtype);
  if (op == Op::fma) return narrow_fma(v, dtype);
  if (op == Op::neg || op == Op::abs)  // of the sign bit alone
    return op == Op::neg ? b_.CreateXor(v[0], same(v[0], 0x8000)) : b_.CreateAnd(v[0], same(v[0], 0x7fff));
  llvm::SmallVector<Value*, 3> wide;
  for (Value* x : v) wide.push_back(widen(x, dtype));
  return narrow(float_operate(op, wide, dtype), dtype);
}

Emitter::Value* Emitter::float_operate(Op op, std::span<Value* const> v, DType rounded_to) {
  Value *a = v[0], *b = v.size() > 1 ? v[1] : nullptr;
  switch (op) {
    case Op::add:
      return b_.CreateFAdd(a, b);
    case Op::sub:
      return b_.CreateFSub(a, b);
    case Op::mul:
      return b_.CreateFMul(a, b);
    case Op::div:
      return b_.CreateFDiv(a, b);
    case Op::floordiv:
    case Op::floormod: {
      Value* q = b_.CreateFDiv(a, b);
      if (is_narrow(rounded_to)) q = widen(narrow(q, rounded_to), rounded_to);
      q = b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, q);
      if (op == Op::floordiv) return q;
      Value* operands[] = {b_.CreateFNeg(q), b, a};
      return intrinsic(llvm::Intrinsic::fma, operands);
    }
    case Op::min:
    case Op::max: {
      // a NaN? a : a before b ? a : b. The unordered comparison is true for a NaN; b's passes as it is the last.
      const bool is_min = op == Op::min;
      Value* first = is_known_number(a)   ? (is_min ? b_.CreateFCmpOLT(a, b) : b_.CreateFCmpOGT(a, b))
                     : is_known_number(b) ? (is_min ? b_.CreateFCmpULT(a, b) : b_.CreateFCmpUGT(a, b))
                                          : nullptr;
      if (first) return b_.CreateSelect(first, a, b);
      Value* ordered = b_.CreateSelect(is_min ? b_.CreateFCmpOLT(a, b) : b_.CreateFCmpOGT(a, b), a, b);
      return b_.CreateSelect(b_.CreateFCmpUNO(a, a), a, ordered);
    }
    case Op::fma:
      return intrinsic(llvm::Intrinsic::fma, v);
    case Op::neg:
      return b_.CreateFNeg(a);
    case Op::abs:
      return intrinsic(llvm::Intrinsic::fabs, v);
    case Op::sqrt:
      return intrinsic(llvm::Intrinsic::sqrt, v);
    case Op::floor:
      return intrinsic(llvm::Intrinsic::floor, v);
    case Op::ceil:
      return intrinsic(llvm::Intrinsic::ceil, v);
    case Op::trunc:
      return intrinsic(llvm::Intrinsic::trunc, v);
    case Op::round:
      return intrinsic(llvm::Intrinsic::roundeven, v);
    default:
      throw_internal("operator " + std::string(kernel::info(op).name) + " has no code for floats");
  }
}

/// a * b + c rounded once: in f64 the product is exact; the sum is rounded to odd, which keeps that something was lost
/// until the last rounding (Boldo & Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
Emitter::Value* Emitter::narrow_fma(std::span<Value* const> v, DType dtype) {
  llvm::SmallVector<Value*, 3> wide;
  for (Value* x : v) {
    Value* f = widen(x, dtype);
    llvm::Type* d = b_.getDoubleTy();
    if (auto* t = llvm::dyn_cast<llvm::FixedVectorType>(f->getType()))
      d = llvm::FixedVectorType::get(d, t->getNumElements());
    wide.push_back(b_.CreateFPExt(f, d));
  }
  Value* p = b_.CreateFMul(wide[0], wide[1]);
  Value* s = b_.CreateFAdd(p, wide[2]);
  Value* back = b_.CreateFSub(s, p);
  Value* error = b_.CreateFAdd(b_.CreateFSub(p, b_.CreateFSub(s, back)), b_.CreateFSub(wide[2], back));
  llvm::Type* i64 = b_.getInt64Ty();
  if (auto* t = llvm::dyn_cast<llvm::FixedVectorType>(s->getType()))
    i64 = llvm::FixedVectorType::get(i64, t->getNumElements());
  Value* bits = b_.CreateBitCast(s, i64);
  Value* zero = llvm::Constant::getNullValue(s->getType());
  // An infinite or NaN sum has a NaN error: the ordered comparison leaves it alone.
  Value* inexact = b_.CreateAnd(b_.CreateFCmpONE(error, zero), b_.CreateIsNull(b_.CreateAnd(bits, same(bits, 1))));
  Value* away = b_.CreateICmpEQ(b_.CreateFCmpOGT(error, zero), b_.CreateFCmpOGT(s, zero));
  Value* moved = b_.CreateAdd(bits, b_.CreateSelect(away, same(bits, 1), same(bits, ~uint64_t{0})));
  return narrow(b_.CreateBitCast(b_.CreateSelect(inexact, moved, bits), s->getType()), dtype);
}

Emitter::Value* Emitter::compare(Op op, DType dtype, Value* a, Value* b) {
  using P = llvm::CmpInst::Predicate;
  const int i = static_cast<int>(op) - static_cast<int>(Op::eq);  // eq ne lt le gt ge
  if (is_float(dtype)) {
    constexpr P kFloat[] = {P::FCMP_OEQ, P::FCMP_UNE, P::FCMP_OLT, P::FCMP_OLE, P::FCMP_OGT, P::FCMP_OGE};
    return b_.CreateFCmp(kFloat[i], widen(a, dtype), widen(b, dtype));
  }
  constexpr P kSigned[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_SLT, P::ICMP_SLE, P::ICMP_SGT, P::ICMP_SGE};
  constexpr P kUnsigned[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_ULT, P::ICMP_ULE, P::ICMP_UGT, P::ICMP_UGE};
  return b_.CreateICmp(is_signed_int(dtype) ? kSigned[i] : kUnsigned[i], a, b);
}

/// Toward zero; by 0 gives 0, and the smallest number by -1 wraps.
Emitter::Value* Emitter::quotient(bool is_signed, Value* a, Value* b) {
  if (const llvm::APInt* known = int_constant(b)) {
    if (known->isZero()) return same(a, 0);
    if (is_signed && known->isAllOnes()) return b_.CreateNeg(a);
    return is_signed ? b_.CreateSDiv(a, b) : b_.CreateUDiv(a, b);
  }
  Value* is_zero = b_.CreateIsNull(b);
  Value* unsafe = is_zero;
  Value* is_minus_one = nullptr;
  if (is_signed) {
    is_minus_one = b_.CreateICmpEQ(b, same(b, ~uint64_t{0}));
    unsafe = b_.CreateOr(is_zero, is_minus_one);
  }
  // Not 1: LLVM's selection takes x / select(c, 1, y) for select(c, x, x / y), and divides by 0 (seen with AVX-512).
  Value* divisor = b_.CreateSelect(unsafe, same(b, 2), b);
  Value* q = is_signed ? b_.CreateSDiv(a, divisor) : b_.CreateUDiv(a, divisor);
  if (is_signed) q = b_.CreateSelect(is_minus_one, b_.CreateNeg(a), q);
  return b_.CreateSelect(is_zero, same(a, 0), q);
}

Emitter::Value* Emitter::shift(Op op, bool is_signed, Value* a, Value* b) {
  const unsigned width = a->getType()->getScalarSizeInBits();
  const bool arithmetic = op == Op::shr && is_signed;
  const llvm::APInt* known = int_constant(b);
  Value* fits = known ? nullptr : b_.CreateICmpULT(b, same(b, width));
  if (known && known->uge(width)) return arithmetic ? b_.CreateAShr(a, same(a, width - 1)) : same(a, 0);
  if (fits) b = b_.CreateSelect(fits, b, same(b, arithmetic ? width - 1 : 0));
  Value* r = op == Op::shl ? b_.CreateShl(a, b) : arithmetic ? b_.CreateAShr(a, b) : b_.CreateLShr(a, b);
  return fits && !arithmetic ? b_.CreateSelect(fits, r, same(a, 0)) : r;
}

Emitter::Value* Emitter::int_operate(Op op, bool is_signed, std::span<Value* const> v) {
  Value *a = v[0], *b = v.size() > 1 ? v[1] : nullptr;
  switch (op) {
    case Op::add:
      return b_.CreateAdd(a, b);
    case Op::sub:
      return b_.CreateSub(a, b);
    case Op::mul:
      return b_.CreateMul(a, b);
    case Op::fma:
      return b_.CreateAdd(b_.CreateMul(a, b), v[2]);
    case Op::div:
      return quotient(is_signed, a, b);
    case Op::floordiv:
    case Op::floormod: {
      const llvm::APInt* known = int_constant(b);
      if (is_signed && known && known->isStrictlyPositive() && known->isPowerOf2())
        return op == Op::floordiv ? b_.CreateAShr(a, same(a, known->logBase2()))
                                  : b_.CreateAnd(a, same(a, known->getZExtValue() - 1));
      Value* q = quotient(is_signed, a, b);
      Value* r = b_.CreateSub(a, b_.CreateMul(q, b));
      // By zero: quotient and remainder are 0.
      if (!known || known->isZero()) r = b_.CreateSelect(b_.CreateIsNull(b), same(a, 0), r);
      if (!is_signed) return op == Op::floordiv ? q : r;
      Value* down = b_.CreateAnd(b_.CreateIsNotNull(r), b_.CreateICmpSLT(b_.CreateXor(r, b), same(r, 0)));
      if (op == Op::floordiv) return b_.CreateAdd(q, b_.CreateSExt(down, q->getType()));
      return b_.CreateSelect(down, b_.CreateAdd(r, b), r);
    }
    case Op::min:
      return b_.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, a, b);
    case Op::max:
      return b_.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, a, b);
    case Op::neg:
      return b_.CreateNeg(a);
    case Op::abs:
      return is_signed ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a, b_.getFalse()) : a;
    case Op::bit_and:
      return b_.CreateAnd(a, b);
    case Op::bit_or:
      return b_.CreateOr(a, b);
    case Op::bit_xor:
      return b_.CreateXor(a, b);
    case Op::bit_not:
      return b_.CreateNot(a);
    case Op::shl:
    case Op::shr:
      return shift(op, is_signed, a, b);
    default:
      throw_internal("operator " + std::string(kernel::info(op).name) + " has no code for integers");
  }
}

}  // namespace cuvil::backends::cpu
