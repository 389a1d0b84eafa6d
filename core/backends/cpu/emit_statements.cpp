// Statements: loops, lets, allocs, branches.
#include "core/backends/cpu/emitter.h"
#include "core/base/error.h"

namespace cuvil::backends::cpu {

using kernel::Expr;
using kernel::StmtKind;

namespace {

// Past this a reg buffer is left to one alloca: it lives in memory anyhow.
constexpr int64_t kMaxElements = 1024;

int64_t element_count(const kernel::BufferInfo& buffer) {
  int64_t n = 1;
  for (const Expr& extent : buffer.shape) n *= extent->int_value;
  return n;
}

}  // namespace

void Emitter::emit(const std::vector<kernel::Stmt>& body) {
  Value* const top = scratch_top_;
  for (const kernel::Stmt& s : body) emit(*s);
  scratch_top_ = top;
}

void Emitter::emit(const kernel::StmtNode& s) {
  done_.clear();
  switch (s.kind) {
    case StmtKind::block:
      emit(s.body);
      break;
    case StmtKind::loop: {
      CUVIL_CHECK(s.loop == kernel::LoopKind::serial,
                  "kernel " + kernel_.name + ": loop " + s.variable->name + " was not lowered");
      Value *begin = emit(s.begin), *end = emit(s.end);
      loop(s.variable, begin, end, s.step, [&] { emit(s.body); });
      break;
    }
    case StmtKind::let:
      vars_[s.variable.get()] = emit(s.value);
      var_depth_[s.variable.get()] = s.value.type() == kernel::kIndex ? depth(s.value) : depth_;
      break;
    case StmtKind::alloc:
      emit_alloc(s);
      break;
    case StmtKind::store:
      emit_store(s);
      break;
    case StmtKind::branch:
      emit_branch(s);
      break;
    case StmtKind::prefetch:
      emit_prefetch(s);
      break;
    case StmtKind::barrier:  // a task is one thread
      break;
    case StmtKind::fail: {
      b_.CreateRet(b_.getInt32(static_cast<uint32_t>(s.code)));
      b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "unreachable", b_.GetInsertBlock()->getParent()));
      break;
    }
  }
  done_.clear();
}

void Emitter::emit_alloc(const kernel::StmtNode& s) {
  const kernel::BufferInfo& buffer = *s.buffer;
  Memory m{s.buffer};
  if (buffer.space == kernel::Space::reg) {
    llvm::Type* element = memory_type(context_, buffer.type);
    const int64_t count = element_count(buffer);
    llvm::IRBuilder<> at_entry(entry_, entry_->begin());
    Expr stride = 1;
    m.strides.resize(buffer.shape.size());
    for (size_t d = buffer.shape.size(); d-- > 0; stride = stride * buffer.shape[d]) m.strides[d] = stride;
    if (indexed_by_constants_.at(&buffer) && count <= kMaxElements) {
      for (int64_t i = 0; i < count; ++i) {
        m.elements.push_back(at_entry.CreateAlloca(element, nullptr, buffer.name));
        // Ends the life of what an earlier iteration left.
        b_.CreateStore(llvm::UndefValue::get(element), m.elements.back());
      }
    } else {
      auto* array = llvm::ArrayType::get(element, static_cast<uint64_t>(count));
      auto* alloca = at_entry.CreateAlloca(array, nullptr, buffer.name);
      alloca->setAlignment(llvm::Align(CUVIL_ALIGNMENT));
      m.base = alloca;
    }
  } else {
    // Where kernel::scratch_bytes accounts for it, or lower: buffers of bodies that have ended share memory.
    m.base = b_.CreatePtrAdd(scratch_, scratch_top_, buffer.name);
    Expr bytes = int64_t{size_of(buffer.type.dtype)} * buffer.type.lanes;
    Expr stride = 1;
    m.strides.resize(buffer.shape.size());
    for (size_t d = buffer.shape.size(); d-- > 0; stride = stride * buffer.shape[d]) m.strides[d] = stride;
    if (!buffer.strides.empty()) m.strides = buffer.strides;
    bytes = kernel::ceildiv(bytes * stride, CUVIL_ALIGNMENT) * CUVIL_ALIGNMENT;
    scratch_top_ = b_.CreateAdd(scratch_top_, emit(bytes));
    m.scope = scopes_.at(&buffer);
  }
  memory_[&buffer] = std::move(m);
}

void Emitter::emit_branch(const kernel::StmtNode& s) {
  llvm::Function* f = b_.GetInsertBlock()->getParent();
  Value* condition = emit(s.value);
  auto* then = llvm::BasicBlock::Create(context_, "then", f);
  auto* otherwise = s.otherwise.empty() ? nullptr : llvm::BasicBlock::Create(context_, "else", f);
  auto* after = llvm::BasicBlock::Create(context_, "endif", f);
  b_.CreateCondBr(condition, then, otherwise ? otherwise : after);
  b_.SetInsertPoint(then);
  emit(s.body);
  b_.CreateBr(after);
  if (otherwise) {
    otherwise->moveAfter(b_.GetInsertBlock());
    b_.SetInsertPoint(otherwise);
    emit(s.otherwise);
    b_.CreateBr(after);
  }
  after->moveAfter(b_.GetInsertBlock());
  b_.SetInsertPoint(after);
}

}  // namespace cuvil::backends::cpu
