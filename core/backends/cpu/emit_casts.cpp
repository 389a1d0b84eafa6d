// Casts between all element types, without a call into a runtime library: f16 and bf16 go through f32 by instructions
// every target has (F16C, NEON) and by integer code.
#include "core/backends/cpu/emitter.h"
#include "core/base/error.h"

namespace cuvil::backends::cpu {

namespace {

bool is_narrow(DType t) { return t == DType::f16 || t == DType::bf16; }

/// `element`, in as many lanes as `like` has.
llvm::Type* lanes_of(llvm::Type* element, llvm::Value* like) {
  auto* v = llvm::dyn_cast<llvm::FixedVectorType>(like->getType());
  return v ? llvm::FixedVectorType::get(element, v->getNumElements()) : element;
}

}  // namespace

Emitter::Value* Emitter::widen(Value* v, DType dtype) {
  llvm::Type* f32 = lanes_of(b_.getFloatTy(), v);
  if (dtype == DType::f16) return b_.CreateFPExt(b_.CreateBitCast(v, lanes_of(b_.getHalfTy(), v)), f32);
  if (dtype != DType::bf16) return v;
  Value* bits = b_.CreateZExt(v, lanes_of(b_.getInt32Ty(), v));
  return b_.CreateBitCast(b_.CreateShl(bits, same(bits, 16)), f32);
}

/// f64 to f32, rounded to odd: rounding the result again to f16 or bf16 is rounding once.
Emitter::Value* Emitter::to_odd_float(Value* v) {
  Value* f = b_.CreateFPTrunc(v, lanes_of(b_.getFloatTy(), v));
  Value* back = b_.CreateFPExt(f, v->getType());
  Value* bits = b_.CreateBitCast(f, lanes_of(b_.getInt32Ty(), v));
  Value* inexact = b_.CreateFCmpONE(back, v);  // false for NaN
  Value* is_even = b_.CreateIsNull(b_.CreateAnd(bits, same(bits, 1)));
  Value* too_large = b_.CreateFCmpOGT(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                      b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v));
  Value* neighbour = b_.CreateAdd(bits, b_.CreateSelect(too_large, same(bits, ~uint64_t{0}), same(bits, 1)));
  return b_.CreateBitCast(b_.CreateSelect(b_.CreateAnd(inexact, is_even), neighbour, bits), f->getType());
}

Emitter::Value* Emitter::narrow(Value* v, DType dtype) {
  if (!is_narrow(dtype)) return v;
  if (v->getType()->getScalarType()->isDoubleTy()) v = to_odd_float(v);
  llvm::Type* i16 = lanes_of(b_.getInt16Ty(), v);
  if (dtype == DType::f16) return b_.CreateBitCast(b_.CreateFPTrunc(v, lanes_of(b_.getHalfTy(), v)), i16);
  Value* bits = b_.CreateBitCast(v, lanes_of(b_.getInt32Ty(), v));
  Value* tie = b_.CreateAnd(b_.CreateLShr(bits, same(bits, 16)), same(bits, 1));
  Value* rounded = b_.CreateLShr(b_.CreateAdd(bits, b_.CreateAdd(tie, same(bits, 0x7fff))), same(bits, 16));
  Value* quiet = b_.CreateOr(b_.CreateLShr(bits, same(bits, 16)), same(bits, 0x40));
  return b_.CreateTrunc(b_.CreateSelect(b_.CreateFCmpUNO(v, v), quiet, rounded), i16);
}

/// Integers above f64's precision are cut to their upper bits and a last one that says whether any was lost.
Emitter::Value* Emitter::int_to_narrow(Value* v, DType from, DType to) {
  const bool is_signed = is_signed_int(from);
  if (size_of(from) <= 2) {
    llvm::Type* f32 = lanes_of(b_.getFloatTy(), v);
    return narrow(is_signed ? b_.CreateSIToFP(v, f32) : b_.CreateUIToFP(v, f32), to);
  }
  llvm::Type* f64 = lanes_of(b_.getDoubleTy(), v);
  if (size_of(from) == 4) return narrow(is_signed ? b_.CreateSIToFP(v, f64) : b_.CreateUIToFP(v, f64), to);
  Value* negative = is_signed ? b_.CreateICmpSLT(v, same(v, 0)) : nullptr;
  Value* m = negative ? b_.CreateSelect(negative, b_.CreateNeg(v), v) : v;
  Value* lost = b_.CreateIsNotNull(b_.CreateAnd(m, same(m, 0xfff)));
  Value* sticky = b_.CreateShl(b_.CreateZExt(lost, m->getType()), same(m, 12));
  Value* cut = b_.CreateOr(b_.CreateAnd(m, same(m, ~uint64_t{0xfff})), sticky);
  Value* is_large = b_.CreateICmpUGE(m, same(m, uint64_t{1} << 53));
  Value* d = b_.CreateUIToFP(b_.CreateSelect(is_large, cut, m), f64);
  if (negative) d = b_.CreateSelect(negative, b_.CreateFNeg(d), d);
  return narrow(d, to);
}

Emitter::Value* Emitter::cast(Value* v, DType from, DType to) {
  if (from == to) return v;
  llvm::Type* t = lanes_of(value_type(context_, {to, 1}), v);
  if (is_float(from)) {
    v = widen(v, from);
    if (to == DType::boolean) return b_.CreateFCmpUNE(v, llvm::Constant::getNullValue(v->getType()));
    if (is_narrow(to)) return narrow(v, to);
    if (is_float(to)) return b_.CreateFPCast(v, t);
    const auto id = is_signed_int(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    return b_.CreateIntrinsic(id, {t, v->getType()}, {v});
  }
  if (to == DType::boolean) return b_.CreateIsNotNull(v);
  if (from == DType::boolean) {
    if (!is_float(to)) return b_.CreateZExt(v, t);
    return is_narrow(to) ? narrow(b_.CreateUIToFP(v, lanes_of(b_.getFloatTy(), v)), to) : b_.CreateUIToFP(v, t);
  }
  if (is_narrow(to)) return int_to_narrow(v, from, to);
  if (is_float(to)) return is_signed_int(from) ? b_.CreateSIToFP(v, t) : b_.CreateUIToFP(v, t);
  return b_.CreateIntCast(v, t, is_signed_int(from));
}

}  // namespace cuvil::backends::cpu
