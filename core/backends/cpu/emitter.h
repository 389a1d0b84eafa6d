// The emitter of one phase; private to emit*.cpp. Each file holds one kind of work.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/target_info.h"
#include "core/kernel/ir.h"

namespace cuvil::backends::cpu {

/// A value's LLVM type: bool is i1; f16 and bf16 are their bits, i16, computed on in f32.
llvm::Type* value_type(llvm::LLVMContext& context, kernel::Type type);
/// The same in memory, where bool is i8.
llvm::Type* memory_type(llvm::LLVMContext& context, kernel::Type type);

class Emitter {
 public:
  Emitter(llvm::Module& module, const kernel::Kernel& kernel, const TargetInfo& target)
      : module_(module), context_(module.getContext()), b_(context_), kernel_(kernel), target_(target) {}

  void emit_phase(const kernel::Phase& phase, const std::string& symbol);

 private:
  using Value = llvm::Value;

  struct Memory {
    kernel::Buffer buffer;
    Value* base = nullptr;                    ///< of its first element; null if split
    std::vector<kernel::Expr> strides;        ///< in elements of buffer->type
    std::vector<llvm::AllocaInst*> elements;  ///< reg buffers indexed by constants only: one alloca per element
    llvm::MDNode *scope = nullptr, *others = nullptr;
  };
  /// An address as sum of coefficient * term (* stride) + constant, so that constants become displacements.
  struct Term {
    kernel::Expr value;
    kernel::Expr stride;  ///< null: 1
    int64_t coefficient = 1;
  };
  struct Address {
    std::vector<Term> terms;
    int64_t constant = 0;
  };

  // emit.cpp: the frame of the function
  void declare_parameters(llvm::Function& function);
  void collect_scopes(const kernel::Phase& phase);
  /// Rotated: `body` runs with the variable bound; steps while it stays below `end`.
  void loop(const kernel::Var& variable, Value* begin, Value* end, int64_t step, const std::function<void()>& body);

  // emit_statements.cpp
  void emit(const std::vector<kernel::Stmt>& body);
  void emit(const kernel::StmtNode& statement);
  void emit_alloc(const kernel::StmtNode& statement);
  void emit_branch(const kernel::StmtNode& statement);

  // emit_memory.cpp
  Value* emit_load(const kernel::ExprNode& load);
  void emit_store(const kernel::StmtNode& store);
  void emit_prefetch(const kernel::StmtNode& prefetch);
  Value* load_at(Value* address, kernel::Type type, Value* mask, const Memory& memory);
  void store_at(Value* address, kernel::Type type, Value* value, Value* mask, const Memory& memory);
  Value* address_of(const Memory& memory, std::span<const kernel::Expr> indices);
  Value* addresses_of(const Memory& memory, std::span<const kernel::Expr> indices, int lanes);
  void add_terms(Address& address, const kernel::Expr& index, const kernel::Expr& stride, int64_t coefficient);
  int depth(const kernel::Expr& e);
  Value* load_element(const Memory& memory, std::span<const kernel::Expr> indices, kernel::Type type, Value* mask);
  void store_element(const Memory& memory, std::span<const kernel::Expr> indices, Value* value, Value* mask);
  llvm::Instruction* in_scope(llvm::Instruction* access, const Memory& memory);
  bool has_masked_access(kernel::Type type) const;
  /// Calls `then` if the scalar condition holds; the builder continues behind. Returns phi(then's value, otherwise).
  Value* when(Value* condition, Value* otherwise, const std::function<Value*()>& then);
  Value* to_memory(Value* value, kernel::Type type);
  Value* from_memory(Value* value, kernel::Type type);

  // emit_values.cpp
  Value* emit(const kernel::Expr& e);
  Value* emit_new(const kernel::ExprNode& e);
  Value* constant(const kernel::ExprNode& e);
  Value* lane_mask(const kernel::ExprNode& e);
  Value* reduce(kernel::Op op, DType dtype, Value* vector, int lanes);
  Value* ramp(Value* base, Value* stride, int lanes);
  Value* splat(Value* scalar, int lanes) { return lanes == 1 ? scalar : b_.CreateVectorSplat(lanes, scalar); }
  /// A scalar as a vector of one lane.
  Value* splat1(Value* scalar) { return b_.CreateVectorSplat(1, scalar); }
  /// An integer constant of `like`'s type, in every lane.
  Value* same(Value* like, uint64_t v) { return llvm::ConstantInt::get(like->getType(), v, /*IsSigned=*/true); }

  // emit_arithmetic.cpp: operators on values; `known` are the operands' expressions, to see constants.
  Value* operate(kernel::Op op, DType dtype, std::span<Value* const> v);
  Value* float_operate(kernel::Op op, std::span<Value* const> v, DType rounded_to);
  Value* int_operate(kernel::Op op, bool is_signed, std::span<Value* const> v);
  Value* narrow_fma(std::span<Value* const> v, DType dtype);
  Value* compare(kernel::Op op, DType dtype, Value* a, Value* b);
  Value* quotient(bool is_signed, Value* a, Value* b);
  Value* shift(kernel::Op op, bool is_signed, Value* a, Value* b);
  Value* intrinsic(llvm::Intrinsic::ID id, std::span<Value* const> v);

  // emit_casts.cpp
  Value* cast(Value* value, DType from, DType to);
  /// f16 and bf16 to f32; other types stay.
  Value* widen(Value* value, DType dtype);
  /// f32 or f64 to f16 or bf16, rounded once; to other types it stays.
  Value* narrow(Value* value, DType dtype);
  Value* to_odd_float(Value* value);
  Value* int_to_narrow(Value* value, DType from, DType to);

  // emit_dot.cpp
  Value* dot(const kernel::ExprNode& e);
  Value* dot_bytes(Value* acc, Value* a, Value* b, bool a_signed, int lanes);
  /// Every `step`-th lane of `v` from `first` on; one lane is a scalar (LLVM fails on some vectors of one lane).
  Value* every(Value* v, int first, int step, int count);

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> b_;
  const kernel::Kernel& kernel_;
  const TargetInfo& target_;

  Value* scratch_ = nullptr;
  Value* scratch_top_ = nullptr;  ///< bytes in use; bodies give theirs back at their end
  llvm::BasicBlock* entry_ = nullptr;
  int depth_ = 0;  ///< of enclosing loops
  std::unordered_map<const kernel::VarInfo*, Value*> vars_;
  std::unordered_map<const kernel::VarInfo*, int> var_depth_;
  std::unordered_map<const kernel::BufferInfo*, Memory> memory_;
  std::unordered_map<const kernel::BufferInfo*, bool> indexed_by_constants_;
  std::unordered_map<const kernel::BufferInfo*, llvm::MDNode*> scopes_;
  std::vector<llvm::Metadata*> all_scopes_;
  /// Values of the current statement's expressions: nodes are shared. Looked up, never listed.
  std::unordered_map<const kernel::ExprNode*, Value*> done_;
};

}  // namespace cuvil::backends::cpu
