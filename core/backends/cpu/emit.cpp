#include "core/backends/cpu/emit.h"

#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include "core/backends/cpu/emitter.h"
#include "core/base/error.h"

namespace cuvil::backends::cpu {

using kernel::Expr;

namespace {

/// Strides in elements: those given, or row-major.
std::vector<Expr> strides_of(const kernel::BufferInfo& buffer) {
  if (!buffer.strides.empty()) return buffer.strides;
  std::vector<Expr> strides(buffer.shape.size());
  Expr stride = 1;
  for (size_t d = buffer.shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride = stride * buffer.shape[d];
  }
  return strides;
}

void set_attributes(llvm::Function& f, const TargetInfo& target, const llvm::TargetMachine& machine) {
  f.addFnAttr(llvm::Attribute::NoUnwind);
  f.addFnAttr("no-builtins");  // a loop that clears memory stays a loop: there is no memset to call
  f.addFnAttr("target-cpu", machine.getTargetCPU());
  f.addFnAttr("target-features", machine.getTargetFeatureString());
  const std::string bits = std::to_string(8 * target.vector_bytes);
  // LLVM splits vectors above the first, whatever the registers can hold.
  f.addFnAttr("min-legal-vector-width", bits);
  f.addFnAttr("prefer-vector-width", bits);
  f.addParamAttr(4, llvm::Attribute::getWithAlignment(f.getContext(), llvm::Align(CUVIL_ALIGNMENT)));
  for (unsigned i : {0u, 1u, 4u}) f.addParamAttr(i, llvm::Attribute::NoAlias);
}

}  // namespace

llvm::Type* value_type(llvm::LLVMContext& c, kernel::Type type) {
  llvm::Type* element = nullptr;
  switch (type.dtype) {
    case DType::f32:
      element = llvm::Type::getFloatTy(c);
      break;
    case DType::f64:
      element = llvm::Type::getDoubleTy(c);
      break;
    case DType::boolean:
      element = llvm::Type::getInt1Ty(c);
      break;
    default:
      element = llvm::IntegerType::get(c, 8 * static_cast<unsigned>(size_of(type.dtype)));
  }
  return type.is_vector() ? llvm::FixedVectorType::get(element, type.lanes) : element;
}

llvm::Type* memory_type(llvm::LLVMContext& c, kernel::Type type) {
  return value_type(c, type.dtype == DType::boolean ? kernel::Type{DType::u8, type.lanes} : type);
}

std::unique_ptr<llvm::Module> emit(const kernel::Kernel& kernel, const std::string& name, const TargetInfo& target,
                                   const llvm::TargetMachine& machine, llvm::LLVMContext& context) {
  auto module = std::make_unique<llvm::Module>(name, context);
  module->setDataLayout(machine.createDataLayout());
  module->setTargetTriple(machine.getTargetTriple().str());
  module->setPICLevel(llvm::PICLevel::SmallPIC);
  for (size_t i = 0; i < kernel.phases.size(); ++i) {
    const std::string symbol = name + "_p" + std::to_string(i);
    Emitter(*module, kernel, target).emit_phase(kernel.phases[i], symbol);
    set_attributes(*module->getFunction(symbol), target, machine);
  }
#ifndef NDEBUG
  std::string problem;
  llvm::raw_string_ostream out(problem);
  CUVIL_CHECK(!llvm::verifyModule(*module, &out), "kernel " + kernel.name + " became invalid LLVM IR: " + problem);
#endif
  return module;
}

void Emitter::emit_phase(const kernel::Phase& phase, const std::string& symbol) {
  llvm::Type *pointer = b_.getPtrTy(), *i64 = b_.getInt64Ty();
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {pointer, pointer, i64, i64, pointer}, false);
  auto* f = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module_);
  entry_ = llvm::BasicBlock::Create(context_, "entry", f);
  b_.SetInsertPoint(entry_);
  scratch_ = f->getArg(4);
  scratch_top_ = b_.getInt64(0);
  collect_scopes(phase);
  declare_parameters(*f);
  loop(phase.task, f->getArg(2), f->getArg(3), 1, [&] { emit(phase.body); });
  b_.CreateRet(b_.getInt32(0));
}

/// Distinct buffers do not overlap (in place is one `inout` parameter): each is an alias scope of its own. Decides
/// too which reg buffers are indexed by constants alone.
void Emitter::collect_scopes(const kernel::Phase& phase) {
  llvm::MDBuilder md(context_);
  llvm::MDNode* domain = md.createAnonymousAliasScopeDomain();
  auto add = [&](const kernel::Buffer& buffer) {
    llvm::MDNode* scope = md.createAnonymousAliasScope(domain);
    scopes_[buffer.get()] = scope;
    all_scopes_.push_back(scope);
  };
  auto access = [&](const kernel::Buffer& buffer, std::span<const Expr> indices, kernel::Type type) {
    for (const Expr& i : indices)
      if (i->op != kernel::Op::const_int) indexed_by_constants_[buffer.get()] = false;
    if (!(type == buffer->type)) indexed_by_constants_[buffer.get()] = false;
  };
  for (const kernel::Buffer& p : kernel_.params) add(p);
  kernel::visit(
      phase.body,
      [&](const kernel::StmtNode& s) {
        if (s.kind == kernel::StmtKind::alloc) {
          indexed_by_constants_.emplace(s.buffer.get(), true);
          if (s.buffer->space != kernel::Space::reg) add(s.buffer);
        }
        if (s.kind == kernel::StmtKind::store) access(s.buffer, s.indices, s.value.type());
      },
      [&](const kernel::ExprNode& e) {
        if (e.op == kernel::Op::load) access(e.buffer, std::span(e.args).first(e.buffer->shape.size()), e.type);
      });
}

void Emitter::declare_parameters(llvm::Function& f) {
  llvm::MDNode* invariant = llvm::MDNode::get(context_, {});
  auto entry_load = [&](llvm::Type* type, Value* from, size_t i, const std::string& name) {
    Value* at = b_.CreateConstInBoundsGEP1_64(type, from, i);
    auto* load = b_.CreateLoad(type, at, name);
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, invariant);
    return load;
  };
  for (size_t i = 0; i < kernel_.dims.size(); ++i) {
    vars_[kernel_.dims[i].get()] = entry_load(b_.getInt64Ty(), f.getArg(1), i, kernel_.dims[i]->name);
    var_depth_[kernel_.dims[i].get()] = 0;
  }
  for (size_t i = 0; i < kernel_.params.size(); ++i) {
    const kernel::Buffer& p = kernel_.params[i];
    Memory m{p, entry_load(b_.getPtrTy(), f.getArg(0), i, p->name), strides_of(*p)};
    memory_[p.get()] = std::move(m);
  }
  for (auto* list : {&kernel_.params})
    for (const kernel::Buffer& p : *list) memory_[p.get()].scope = scopes_[p.get()];
}

void Emitter::loop(const kernel::Var& variable, Value* begin, Value* end, int64_t step,
                   const std::function<void()>& body) {
  llvm::Function* f = b_.GetInsertBlock()->getParent();
  auto* inside = llvm::BasicBlock::Create(context_, variable->name, f);
  auto* after = llvm::BasicBlock::Create(context_, variable->name + ".end", f);
  llvm::BasicBlock* before = b_.GetInsertBlock();
  b_.CreateCondBr(b_.CreateICmpSLT(begin, end), inside, after);
  b_.SetInsertPoint(inside);
  llvm::PHINode* iv = b_.CreatePHI(b_.getInt64Ty(), 2, variable->name);
  iv->addIncoming(begin, before);
  vars_[variable.get()] = iv;
  var_depth_[variable.get()] = ++depth_;
  Value* const top = scratch_top_;
  body();
  scratch_top_ = top;
  --depth_;
  Value* next = b_.CreateNSWAdd(iv, b_.getInt64(static_cast<uint64_t>(step)));
  iv->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, end), inside, after);
  after->moveAfter(b_.GetInsertBlock());
  b_.SetInsertPoint(after);
}

}  // namespace cuvil::backends::cpu
