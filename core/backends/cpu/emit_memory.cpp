// Loads, stores, prefetches and their addresses.
#include <algorithm>

#include "core/backends/cpu/emitter.h"
#include "core/base/error.h"

namespace cuvil::backends::cpu {

using kernel::Expr;
using kernel::ExprNode;
using kernel::Op;

namespace {

/// The scalar of a vector with equal lanes; null otherwise.
const Expr* broadcast_scalar(const Expr& e) { return e->op == Op::broadcast ? &e->args[0] : nullptr; }

llvm::Align element_alignment(kernel::Type type) { return llvm::Align(static_cast<uint64_t>(size_of(type.dtype))); }

}  // namespace

llvm::Instruction* Emitter::in_scope(llvm::Instruction* access, const Memory& m) {
  if (!m.scope) return access;
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, llvm::MDNode::get(context_, {m.scope}));
  llvm::SmallVector<llvm::Metadata*> others;
  for (llvm::Metadata* s : all_scopes_)
    if (s != m.scope) others.push_back(s);
  if (!others.empty()) access->setMetadata(llvm::LLVMContext::MD_noalias, llvm::MDNode::get(context_, others));
  return access;
}

Emitter::Value* Emitter::to_memory(Value* v, kernel::Type type) {
  return type.dtype == DType::boolean ? b_.CreateZExt(v, memory_type(context_, type)) : v;
}
Emitter::Value* Emitter::from_memory(Value* v, kernel::Type type) {
  return type.dtype == DType::boolean ? b_.CreateIsNotNull(v) : v;
}

// ---- addresses

int Emitter::depth(const Expr& e) {
  if (e->op == Op::load) return depth_;
  if (e->op == Op::var) return var_depth_.at(e->variable.get());
  int deepest = 0;
  for (const Expr& a : e->args) deepest = std::max(deepest, depth(a));
  return deepest;
}

void Emitter::add_terms(Address& address, const Expr& index, const Expr& stride, int64_t coefficient) {
  switch (index->op) {
    case Op::add:
      add_terms(address, index->args[0], stride, coefficient);
      add_terms(address, index->args[1], stride, coefficient);
      return;
    case Op::sub:
      add_terms(address, index->args[0], stride, coefficient);
      add_terms(address, index->args[1], stride, -coefficient);
      return;
    case Op::neg:
      add_terms(address, index->args[0], stride, -coefficient);
      return;
    case Op::mul:
      for (int i : {0, 1}) {
        if (index->args[i]->op != Op::const_int) continue;
        add_terms(address, index->args[1 - i], stride, coefficient * index->args[i]->int_value);
        return;
      }
      break;
    case Op::const_int:
      if (!stride) {
        address.constant += coefficient * index->int_value;
        return;
      }
      if (index->int_value == 0) return;
      if (!index.is_const_int(1)) return add_terms(address, 1, stride, coefficient * index->int_value);
      break;
    default:
      break;
  }
  for (Term& t : address.terms) {
    const bool equal_value = t.value.get() == index.get() ||
                             (t.value->op == Op::var && index->op == Op::var && t.value->variable == index->variable) ||
                             (t.value.is_const_int(1) && index.is_const_int(1));
    if (equal_value && t.stride.get() == stride.get()) {
      t.coefficient += coefficient;
      return;
    }
  }
  address.terms.push_back({index, stride, coefficient});
}

Emitter::Value* Emitter::address_of(const Memory& m, std::span<const Expr> indices) {
  Address address;
  for (size_t d = 0; d < indices.size(); ++d) {
    const Expr& stride = m.strides[d];
    const bool known = stride->op == Op::const_int;
    add_terms(address, indices[d], known ? Expr() : stride, known ? stride->int_value : 1);
  }
  // The sums of outer loops first, to be hoisted; constants last, to become displacements.
  std::vector<std::pair<int, Value*>> offsets;
  for (const Term& t : address.terms) {
    if (t.coefficient == 0) continue;
    Value* v = emit(t.value);
    int level = depth(t.value);
    if (t.stride) {
      v = t.value.is_const_int(1) ? emit(t.stride) : b_.CreateMul(v, emit(t.stride));
      level = std::max(level, depth(t.stride));
    }
    if (t.coefficient != 1) v = b_.CreateMul(v, b_.getInt64(static_cast<uint64_t>(t.coefficient)), "", false, true);
    offsets.emplace_back(level, v);
  }
  std::stable_sort(offsets.begin(), offsets.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  llvm::Type* element = memory_type(context_, m.buffer->type);
  Value* at = m.base;
  for (size_t i = 0; i < offsets.size();) {
    const int level = offsets[i].first;
    Value* sum = offsets[i].second;
    for (++i; i < offsets.size() && offsets[i].first == level; ++i) sum = b_.CreateAdd(sum, offsets[i].second);
    at = b_.CreateGEP(element, at, sum);
  }
  if (address.constant != 0) at = b_.CreateGEP(element, at, b_.getInt64(static_cast<uint64_t>(address.constant)));
  return at;
}

Emitter::Value* Emitter::addresses_of(const Memory& m, std::span<const Expr> indices, int lanes) {
  Value* sum = nullptr;
  for (size_t d = 0; d < indices.size(); ++d) {
    Value* v = emit(indices[d]);
    if (!m.strides[d].is_const_int(1)) v = b_.CreateMul(v, splat(emit(m.strides[d]), lanes));
    sum = sum ? b_.CreateAdd(sum, v) : v;
  }
  return b_.CreateGEP(memory_type(context_, m.buffer->type), m.base, sum);
}

// ---- accesses

bool Emitter::has_masked_access(kernel::Type type) const {
  if (target_.arch != Arch::x86_64) return false;
  return target_.has(CUVIL_FEATURE_AVX512) || size_of(type.dtype) >= 4;
}

Emitter::Value* Emitter::when(Value* condition, Value* otherwise, const std::function<Value*()>& then) {
  llvm::Function* f = b_.GetInsertBlock()->getParent();
  auto* inside = llvm::BasicBlock::Create(context_, "when", f);
  auto* after = llvm::BasicBlock::Create(context_, "endwhen", f);
  llvm::BasicBlock* before = b_.GetInsertBlock();
  b_.CreateCondBr(condition, inside, after);
  b_.SetInsertPoint(inside);
  Value* v = then();
  llvm::BasicBlock* end = b_.GetInsertBlock();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  if (!otherwise) return nullptr;
  llvm::PHINode* phi = b_.CreatePHI(otherwise->getType(), 2);
  phi->addIncoming(otherwise, before);
  phi->addIncoming(v, end);
  return phi;
}

/// `mask`: null, i1, or a vector of i1. Without cheap masked accesses the usual case, no lane masked, is tested for.
Emitter::Value* Emitter::load_at(Value* at, kernel::Type type, Value* mask, const Memory& m) {
  llvm::Type* t = memory_type(context_, type);
  const llvm::Align align = element_alignment(type);
  auto whole = [&] { return in_scope(b_.CreateAlignedLoad(t, at, align), m); };
  if (!mask) return whole();
  Value* zero = llvm::Constant::getNullValue(t);
  if (!mask->getType()->isVectorTy()) return when(mask, zero, whole);
  auto masked = [&] { return in_scope(b_.CreateMaskedLoad(t, at, align, mask, zero), m); };
  if (has_masked_access(type)) return masked();
  Value* all = b_.CreateAndReduce(mask);
  Value* some = when(b_.CreateNot(all), zero, masked);
  return when(all, some, whole);
}

void Emitter::store_at(Value* at, kernel::Type type, Value* value, Value* mask, const Memory& m) {
  const llvm::Align align = element_alignment(type);
  // LLVM 19 stores wrong bytes when three wider lanes are cut to bytes and stored at once (AArch64).
  const bool lane_by_lane = target_.arch == Arch::aarch64 && type.lanes == 3 && size_of(type.dtype) == 1;
  auto whole = [&]() -> Value* {
    if (!lane_by_lane) in_scope(b_.CreateAlignedStore(value, at, align), m);
    for (unsigned i = 0; lane_by_lane && i < type.lanes; ++i)
      in_scope(b_.CreateStore(b_.CreateExtractElement(value, i), b_.CreateConstGEP1_64(b_.getInt8Ty(), at, i)), m);
    return nullptr;
  };
  auto masked = [&]() -> Value* {
    in_scope(b_.CreateMaskedStore(value, at, align, mask), m);
    return nullptr;
  };
  if (!mask) {
    whole();
  } else if (!mask->getType()->isVectorTy()) {
    when(mask, nullptr, whole);
  } else if (has_masked_access(type)) {
    masked();
  } else {
    Value* all = b_.CreateAndReduce(mask);
    when(all, nullptr, whole);
    when(b_.CreateNot(all), nullptr, masked);
  }
}

namespace {

/// A split buffer's element, or -1 where dead code leaves the buffer.
int64_t flat_index(const kernel::BufferInfo& buffer, std::span<const Expr> indices) {
  int64_t flat = 0;
  for (size_t d = 0; d < indices.size(); ++d) {
    const int64_t i = indices[d]->int_value, extent = buffer.shape[d]->int_value;
    if (i < 0 || i >= extent) return -1;
    flat = flat * extent + i;
  }
  return flat;
}

/// Lanes lie side by side although the indices are vectors: all equal but the last, which counts up by one.
bool is_contiguous_ramp(std::span<const Expr> indices, const Expr& last_stride) {
  if (indices.empty() || !last_stride.is_const_int(1)) return false;
  if (indices.back()->op != Op::ramp || !indices.back()->args[1].is_const_int(1)) return false;
  return std::all_of(indices.begin(), indices.end() - 1, [](const Expr& i) { return i->op == Op::broadcast; });
}

std::vector<Expr> first_lane(std::span<const Expr> indices) {
  std::vector<Expr> scalars;
  for (const Expr& i : indices) scalars.push_back(i->args[0]);
  return scalars;
}

}  // namespace

Emitter::Value* Emitter::load_element(const Memory& m, std::span<const Expr> indices, kernel::Type type, Value* mask) {
  llvm::Type* t = memory_type(context_, type);
  Value* zero = llvm::Constant::getNullValue(t);
  const int64_t i = flat_index(*m.buffer, indices);
  if (i < 0) return zero;
  Value* v = b_.CreateLoad(t, m.elements[static_cast<size_t>(i)]);
  return mask ? b_.CreateSelect(mask, v, zero) : v;
}

void Emitter::store_element(const Memory& m, std::span<const Expr> indices, Value* value, Value* mask) {
  const int64_t i = flat_index(*m.buffer, indices);
  if (i < 0) return;
  llvm::AllocaInst* element = m.elements[static_cast<size_t>(i)];
  if (mask) value = b_.CreateSelect(mask, value, b_.CreateLoad(value->getType(), element));
  b_.CreateStore(value, element);
}

Emitter::Value* Emitter::emit_load(const ExprNode& e) {
  const Memory& m = memory_.at(e.buffer.get());
  const std::span<const Expr> indices = std::span(e.args).first(e.buffer->shape.size());
  // A vector's mask of equal lanes is one condition, where masks cost.
  Value* mask = nullptr;
  if (e.has_mask) {
    const Expr* one = broadcast_scalar(e.args.back());
    mask = emit(one && !has_masked_access(e.type) && m.elements.empty() ? *one : e.args.back());
  }
  if (!m.elements.empty()) return from_memory(load_element(m, indices, e.type, mask), e.type);
  if (indices.empty() || !indices[0].type().is_vector())
    return from_memory(load_at(address_of(m, indices), e.type, mask, m), e.type);
  const int lanes = e.type.lanes;
  if (is_contiguous_ramp(indices, m.strides.back()))
    return from_memory(load_at(address_of(m, first_lane(indices)), e.type, mask, m), e.type);
  if (!mask && std::all_of(indices.begin(), indices.end(), broadcast_scalar)) {
    Value* v = load_at(address_of(m, first_lane(indices)), e.type.element(), nullptr, m);
    return splat(from_memory(v, e.type.element()), lanes);
  }
  if (mask && !mask->getType()->isVectorTy()) mask = splat(mask, lanes);
  llvm::Type* t = memory_type(context_, e.type);
  if (!mask) mask = llvm::Constant::getAllOnesValue(value_type(context_, kernel::kBool.with_lanes(lanes)));
  Value* gathered = in_scope(b_.CreateMaskedGather(t, addresses_of(m, indices, lanes), element_alignment(e.type), mask,
                                                   llvm::Constant::getNullValue(t)),
                             m);
  return from_memory(gathered, e.type);
}

void Emitter::emit_store(const kernel::StmtNode& s) {
  const Memory& m = memory_.at(s.buffer.get());
  const kernel::Type type = s.value.type();
  Value* value = to_memory(emit(s.value), type);
  const std::span<const Expr> indices = s.indices;
  Value* mask = nullptr;
  if (s.mask) {
    const Expr* one = broadcast_scalar(s.mask);
    mask = emit(one && !has_masked_access(type) && m.elements.empty() ? *one : s.mask);
  }
  if (!m.elements.empty()) {
    store_element(m, indices, value, mask);
  } else if (indices.empty() || !indices[0].type().is_vector()) {
    store_at(address_of(m, indices), type, value, mask, m);
  } else if (is_contiguous_ramp(indices, m.strides.back())) {
    store_at(address_of(m, first_lane(indices)), type, value, mask, m);
  } else {
    if (mask && !mask->getType()->isVectorTy()) mask = splat(mask, type.lanes);
    if (!mask) mask = llvm::Constant::getAllOnesValue(value_type(context_, kernel::kBool.with_lanes(type.lanes)));
    in_scope(b_.CreateMaskedScatter(value, addresses_of(m, indices, type.lanes), element_alignment(type), mask), m);
  }
}

void Emitter::emit_prefetch(const kernel::StmtNode& s) {
  Value* at = address_of(memory_.at(s.buffer.get()), s.indices);
  Value* args[] = {at, b_.getInt32(0), b_.getInt32(s.code == 1 ? 3 : 2), b_.getInt32(1)};
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {at->getType()}, args);
}

}  // namespace cuvil::backends::cpu
