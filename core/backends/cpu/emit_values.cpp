// Expressions: leaves, vectors, and the way to the operators.
#include <cstring>

#include "core/backends/cpu/emitter.h"
#include "core/base/error.h"
#include "core/kernel/scalar.h"

namespace cuvil::backends::cpu {

using kernel::Expr;
using kernel::ExprNode;
using kernel::Op;

Emitter::Value* Emitter::emit(const Expr& e) {
  if (e->op == Op::var) return vars_.at(e->variable.get());
  if (e->args.empty() && e->op != Op::load) return constant(*e);
  const auto known = done_.find(e.get());
  if (known != done_.end()) return known->second;
  Value* v = emit_new(*e);
  done_[e.get()] = v;
  return v;
}

Emitter::Value* Emitter::constant(const ExprNode& e) {
  llvm::Type* t = value_type(context_, e.type);
  unsigned char memory[8] = {};
  kernel::store_scalar(memory, e.type.dtype, {e.int_value, e.float_value});
  uint64_t bits = 0;
  std::memcpy(&bits, memory, sizeof(bits));
  if (e.type.dtype == DType::f32)
    return llvm::ConstantFP::get(context_, llvm::APFloat(llvm::APFloat::IEEEsingle(), llvm::APInt(32, bits)));
  if (e.type.dtype == DType::f64)
    return llvm::ConstantFP::get(context_, llvm::APFloat(llvm::APFloat::IEEEdouble(), llvm::APInt(64, bits)));
  return llvm::ConstantInt::get(t, bits);
}

Emitter::Value* Emitter::ramp(Value* base, Value* stride, int lanes) {
  llvm::SmallVector<llvm::Constant*> steps;
  for (int i = 0; i < lanes; ++i) steps.push_back(b_.getInt64(static_cast<uint64_t>(i)));
  Value* offsets = llvm::ConstantVector::get(steps);
  return b_.CreateAdd(splat(base, lanes), b_.CreateMul(offsets, splat(stride, lanes)));
}

/// ramp(base, 1) < broadcast(end) in 32 bits instead of 64: lane number < end - base, the latter clamped.
Emitter::Value* Emitter::lane_mask(const ExprNode& e) {
  const Expr &a = e.args[0], &b = e.args[1];
  if (e.op != Op::lt || a->op != Op::ramp || !a->args[1].is_const_int(1) || b->op != Op::broadcast) return nullptr;
  const auto lanes = static_cast<unsigned>(e.type.lanes);
  Value* left = b_.CreateSub(emit(b->args[0]), emit(a->args[0]));
  left = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, left, b_.getInt64(0));
  left = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, left, b_.getInt64(lanes));
  llvm::SmallVector<llvm::Constant*> numbers;
  for (unsigned i = 0; i < lanes; ++i) numbers.push_back(b_.getInt32(i));
  return b_.CreateICmpSLT(llvm::ConstantVector::get(numbers),
                          splat(b_.CreateTrunc(left, b_.getInt32Ty()), e.type.lanes));
}

/// In the order of kernel::reduce_lanes: halves while they are even, then from left to right.
Emitter::Value* Emitter::reduce(Op op, DType dtype, Value* v, int lanes) {
  const Op pair = op == Op::reduce_add ? Op::add : op == Op::reduce_max ? Op::max : Op::min;
  for (; lanes % 2 == 0; lanes /= 2) {
    Value* halves[] = {every(v, 0, 1, lanes / 2), every(v, lanes / 2, 1, lanes / 2)};
    v = operate(pair, dtype, halves);
  }
  if (lanes == 1) return v;
  Value* r = b_.CreateExtractElement(v, uint64_t{0});
  for (int i = 1; i < lanes; ++i) {
    Value* operands[] = {r, b_.CreateExtractElement(v, static_cast<uint64_t>(i))};
    r = operate(pair, dtype, operands);
  }
  return r;
}

Emitter::Value* Emitter::every(Value* v, int first, int step, int count) {
  if (count == 1) return b_.CreateExtractElement(v, static_cast<uint64_t>(first));
  llvm::SmallVector<int> picks;
  for (int i = 0; i < count; ++i) picks.push_back(first + i * step);
  return b_.CreateShuffleVector(v, picks);
}

Emitter::Value* Emitter::emit_new(const ExprNode& e) {
  switch (e.op) {
    case Op::load:
      return emit_load(e);
    case Op::ramp:
      return ramp(emit(e.args[0]), emit(e.args[1]), e.type.lanes);
    case Op::broadcast:
      return splat(emit(e.args[0]), e.type.lanes);
    case Op::lane:
      return b_.CreateExtractElement(emit(e.args[0]), static_cast<uint64_t>(e.int_value));
    case Op::shuffle: {
      Value* a = emit(e.args[0]);
      if (!a->getType()->isVectorTy()) a = splat1(a);
      Value* b = e.args.size() > 1 ? emit(e.args[1]) : llvm::PoisonValue::get(a->getType());
      if (!b->getType()->isVectorTy()) b = splat1(b);
      Value* v = b_.CreateShuffleVector(a, b, e.lanes);
      return e.type.is_vector() ? v : b_.CreateExtractElement(v, uint64_t{0});
    }
    case Op::reduce_add:
    case Op::reduce_max:
    case Op::reduce_min:
      return reduce(e.op, e.type.dtype, emit(e.args[0]), e.args[0].type().lanes);
    case Op::cast:
      return cast(emit(e.args[0]), e.args[0].type().dtype, e.type.dtype);
    case Op::bitcast:
      return b_.CreateBitCast(emit(e.args[0]), value_type(context_, e.type));
    case Op::dot:
      return dot(e);
    case Op::select: {
      Value *c = emit(e.args[0]), *a = emit(e.args[1]), *b = emit(e.args[2]);
      return b_.CreateSelect(c, a, b);
    }
    default:
      break;
  }
  CUVIL_CHECK(e.op < Op::exp || e.op > Op::pow,
              "kernel " + kernel_.name + ": " + std::string(kernel::info(e.op).name) + " was not expanded");
  if (Value* mask = lane_mask(e)) return mask;
  llvm::SmallVector<Value*, 3> operands;
  for (const Expr& a : e.args) operands.push_back(emit(a));
  return operate(e.op, e.args[0].type().dtype, operands);
}

}  // namespace cuvil::backends::cpu
