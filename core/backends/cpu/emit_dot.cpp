// Dot products of narrow lanes: by instruction where the target has one, exactly the same by arithmetic elsewhere.
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "core/backends/cpu/emitter.h"

namespace cuvil::backends::cpu {

using kernel::ExprNode;

namespace {

/// vpdpbusd for a register of `lanes` i32; 0 if no register has that many.
llvm::Intrinsic::ID vnni(int lanes) {
  switch (lanes) {
    case 4:
      return llvm::Intrinsic::x86_avx512_vpdpbusd_128;
    case 8:
      return llvm::Intrinsic::x86_avx512_vpdpbusd_256;
    case 16:
      return llvm::Intrinsic::x86_avx512_vpdpbusd_512;
    default:
      return llvm::Intrinsic::not_intrinsic;
  }
}

}  // namespace

Emitter::Value* Emitter::dot_bytes(Value* acc, Value* a, Value* b, bool a_signed, int lanes) {
  llvm::Type* i32s = value_type(context_, kernel::Type{DType::i32}.with_lanes(lanes));
  if (!a_signed && target_.has(CUVIL_FEATURE_VNNI) && vnni(lanes) != llvm::Intrinsic::not_intrinsic)
    return b_.CreateIntrinsic(vnni(lanes), {}, {acc, b_.CreateBitCast(a, i32s), b_.CreateBitCast(b, i32s)});
  if (target_.arch == Arch::aarch64 && lanes == 4) {
    if (a_signed && target_.has(CUVIL_FEATURE_DOTPROD))
      return b_.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_sdot, {i32s, a->getType()}, {acc, a, b});
    if (!a_signed && target_.has(CUVIL_FEATURE_I8MM))
      return b_.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_usdot, {i32s, a->getType()}, {acc, a, b});
  }
  for (int i = 0; i < 4; ++i) {
    Value *x = every(a, i, 4, lanes), *y = every(b, i, 4, lanes);
    x = a_signed ? b_.CreateSExt(x, i32s) : b_.CreateZExt(x, i32s);
    acc = b_.CreateAdd(acc, b_.CreateMul(x, b_.CreateSExt(y, i32s)));
  }
  return acc;
}

Emitter::Value* Emitter::dot(const ExprNode& e) {
  Value *acc = emit(e.args[0]), *a = emit(e.args[1]), *b = emit(e.args[2]);
  const int lanes = e.type.lanes;
  if (e.type.dtype == DType::f32) {
    // The instruction for bf16 flushes subnormals and rounds differently: two multiply-adds are exact.
    for (int i = 0; i < 2; ++i) {
      Value* operands[] = {widen(every(a, i, 2, lanes), DType::bf16), widen(every(b, i, 2, lanes), DType::bf16), acc};
      acc = intrinsic(llvm::Intrinsic::fma, operands);
    }
  } else {
    acc = dot_bytes(acc, a, b, e.args[1].type().dtype == DType::i8, lanes);
  }
  return acc;
}

}  // namespace cuvil::backends::cpu
