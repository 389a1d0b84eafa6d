#include "core/artifact/program.h"

#include <map>
#include <tuple>

#include "core/abi/cvl_file.h"
#include "core/abi/hash.h"
#include "core/base/error.h"

namespace cuvil::artifact {
namespace {

using cvl::kNone;

template <class T>
T& append(std::vector<std::unique_ptr<T>>& list) {
  list.push_back(std::make_unique<T>());
  return *list.back();
}

class Serializer {
 public:
  explicit Serializer(const plan::Plan& plan) : plan_(plan) {}

  std::vector<uint8_t> run(ConstantHashes hashes) {
    for (size_t i = 0; i < plan_.symbols.size(); ++i) symbol_numbers_[plan_.symbols[i].name] = i;
    for (const plan::Symbol& s : plan_.symbols) add_symbol(s);
    for (const plan::Port& p : plan_.inputs) add_port(p, out_.inputs);
    for (const plan::Port& p : plan_.outputs) add_port(p, out_.outputs);
    add_buffers();
    for (const ir::Tensor& t : plan_.constants) {
      auto& c = append(out_.constants);
      c.bytes = static_cast<uint64_t>(t.bytes());
      c.hash = hashes == ConstantHashes::computed ? xxh64(t.raw(), c.bytes) : 0;
    }
    for (const kernel::Kernel& k : plan_.kernels) {
      auto& kernel = append(out_.kernels);
      kernel.name = k.name;
      kernel.phases = static_cast<uint32_t>(k.phases.size());
    }
    for (const plan::Requirement& r : plan_.requirements) {
      auto& out = append(out_.requirements);
      out.left = size(r.left);
      out.right = size(r.right);
      out.text = r.text;
      out.location = location(r.location);
    }
    for (const plan::Step& s : plan_.steps) s.kernel >= 0 ? add_kernel_step(s) : add_host_step(s);
    return pack(out_);
  }

 private:
  // ---- size programs, equal ones once
  uint32_t size(const Dim& dim) {
    auto [it, added] = sizes_.emplace(dim.str(), static_cast<uint32_t>(out_.sizes.size()));
    if (!added) return it->second;
    const auto begin = static_cast<uint32_t>(out_.size_ops.size());
    emit(dim);
    out_.sizes.emplace_back(begin, static_cast<uint32_t>(out_.size_ops.size()) - begin);
    return it->second;
  }
  uint32_t nonzero_size(const Dim& dim) { return dim == Dim(0) ? kNone : size(dim); }
  std::vector<uint32_t> sizes(const std::vector<Dim>& dims) {
    std::vector<uint32_t> numbers;
    for (const Dim& d : dims) numbers.push_back(size(d));
    return numbers;
  }

  uint32_t symbol(const std::string& name) const {
    auto it = symbol_numbers_.find(name);
    CUVIL_CHECK(it != symbol_numbers_.end(), "symbol " + name + " is not bound by the plan");
    return static_cast<uint32_t>(it->second);
  }

  void emit(const Dim& dim) {
    const Dim::View view = dim.view();
    if (view.kind == Dim::Kind::constant) {
      out_.size_ops.emplace_back(view.value, CUVIL_EXPR_CONST);
      return;
    }
    if (view.kind == Dim::Kind::symbol) {
      out_.size_ops.emplace_back(symbol(std::string(view.name)), CUVIL_EXPR_SYMBOL);
      return;
    }
    for (size_t i = 0; i < view.operands.size(); ++i) {
      emit(view.operands[i]);
      if (i > 0) out_.size_ops.emplace_back(0, opcode(view.kind));
    }
  }

  static uint8_t opcode(Dim::Kind kind) {
    switch (kind) {
      case Dim::Kind::add:
        return CUVIL_EXPR_ADD;
      case Dim::Kind::mul:
        return CUVIL_EXPR_MUL;
      case Dim::Kind::floordiv:
        return CUVIL_EXPR_FLOORDIV;
      case Dim::Kind::mod:
        return CUVIL_EXPR_MOD;
      case Dim::Kind::min:
        return CUVIL_EXPR_MIN;
      case Dim::Kind::max:
        return CUVIL_EXPR_MAX;
      default:
        throw_internal("a leaf has no operator");
    }
  }

  // ---- tables
  void add_symbol(const plan::Symbol& s) {
    auto& out = append(out_.symbols);
    out.name = s.name;
    if (s.step >= 0) {
      out.step = static_cast<uint32_t>(s.step);
      out.upper = size(s.upper);
    } else {
      out.input = static_cast<uint32_t>(s.input);
      out.axis = static_cast<uint32_t>(s.axis);
    }
  }

  void add_port(const plan::Port& p, std::vector<std::unique_ptr<cvl::TensorInfoT>>& list) {
    auto& out = append(list);
    out.name = p.name;
    out.dtype = static_cast<uint8_t>(p.dtype);
    out.dims = sizes(p.shape);
    for (const Dim& d : p.shape) out.dim_texts.push_back(d.str());
    if (p.fixed) out.fixed.assign(p.fixed->raw(), p.fixed->raw() + p.fixed->bytes());
  }

  /// The buffer whose memory `index` is, and where in it: views of views become views of that.
  std::pair<int, Dim> root(int index) const {
    Dim offset = 0;
    while (plan_.buffers[index].view_of >= 0) {
      offset = offset + plan_.buffers[index].view_offset;
      index = plan_.buffers[index].view_of;
    }
    return {index, offset};
  }

  void add_buffers() {
    std::map<int, uint32_t> inputs, outputs;
    for (size_t i = 0; i < plan_.inputs.size(); ++i) inputs[plan_.inputs[i].buffer] = static_cast<uint32_t>(i);
    for (size_t i = 0; i < plan_.outputs.size(); ++i) {
      const auto [buffer, offset] = root(plan_.outputs[i].buffer);
      CUVIL_CHECK(offset == Dim(0) && outputs.emplace(buffer, static_cast<uint32_t>(i)).second,
                  "each output has memory of its own");
    }
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      const plan::Buffer& b = plan_.buffers[i];
      auto& out = append(out_.buffers);
      out.name = b.name;
      out.bytes = size(b.bytes);
      if (b.view_of >= 0) {
        const auto [base, offset] = root(static_cast<int>(i));
        out.kind = cvl::BufferKind::view;
        out.index = static_cast<uint32_t>(base);
        out.offset = nonzero_size(offset);
        continue;
      }
      switch (b.kind) {
        case plan::BufferKind::input:
          out.kind = cvl::BufferKind::input;
          out.index = inputs.at(static_cast<int>(i));
          break;
        case plan::BufferKind::output:
          out.kind = cvl::BufferKind::output;
          out.index = outputs.at(static_cast<int>(i));
          break;
        case plan::BufferKind::constant:
          out.kind = cvl::BufferKind::constant;
          out.index = static_cast<uint32_t>(b.constant);
          break;
        case plan::BufferKind::arena:
          out.kind = cvl::BufferKind::arena;
          out.first = static_cast<uint32_t>(b.first_step);
          out.last = static_cast<uint32_t>(b.last_step);
          out.arena_offset = b.offset;
          break;
      }
    }
  }

  uint32_t location(const Location& l) {
    if (!l.known()) return kNone;
    auto key = std::make_tuple(l.file, l.line, l.function, l.module_path, l.variable);
    auto [it, added] = locations_.emplace(std::move(key), static_cast<uint32_t>(out_.locations.size()));
    if (!added) return it->second;
    auto& out = append(out_.locations);
    out.file = l.file;
    out.line = l.line;
    out.function = l.function;
    out.module_path = l.module_path;
    out.variable = l.variable;
    return it->second;
  }

  void add_kernel_step(const plan::Step& s) {
    auto& out = append(out_.steps);
    out.label = s.name;
    out.location = location(s.location);
    out.kernel = static_cast<uint32_t>(s.kernel);
    out.tasks = sizes(s.tasks);
    for (const plan::Argument& a : s.arguments)
      out.arguments.emplace_back(static_cast<uint32_t>(a.buffer), kNone, kNone);
    for (const std::string& name : s.symbols) out.dims.push_back(size(Dim::symbol(name)));
    out.scratch = nonzero_size(s.scratch_bytes);
  }

  /// A host operator or a jump.
  void add_host_step(const plan::Step& s) {
    auto& out = append(out_.steps);
    out.label = s.name;
    out.location = location(s.location);
    out.host = s.host;
    for (size_t i = 0; i < s.arguments.size(); ++i) {
      auto& operand = append(i < static_cast<size_t>(s.inputs) ? out.inputs : out.outputs);
      operand.buffer = static_cast<uint32_t>(s.arguments[i].buffer);
      operand.dtype = static_cast<uint8_t>(s.arguments[i].dtype);
      operand.dims = sizes(s.arguments[i].shape);
    }
    for (const auto& [name, value] : s.host_attributes) add_attribute(name, value, out);
    for (const std::string& name : s.symbols) out.symbols.push_back(symbol(name));
    if (s.target >= 0) out.target = static_cast<uint32_t>(s.target);
  }

  static void add_attribute(const std::string& name, const ir::Attribute& value, cvl::StepT& step) {
    auto out = std::make_unique<cvl::AttributeT>();
    out->name = name;
    if (const auto* i = std::get_if<int64_t>(&value))
      out->ints = {*i};
    else if (const auto* d = std::get_if<double>(&value))
      out->floats = {*d};
    else if (const auto* s = std::get_if<std::string>(&value))
      out->text = *s;
    else if (const auto* is = std::get_if<std::vector<int64_t>>(&value))
      out->ints = *is;
    else if (const auto* ds = std::get_if<std::vector<double>>(&value))
      out->floats = *ds;
    else if (const auto* t = std::get_if<DType>(&value))
      out->ints = {static_cast<int64_t>(*t)};
    else
      throw_internal("attribute '" + name + "' of a host operator is of a type that a program cannot hold");
    step.attributes.push_back(std::move(out));
  }

  const plan::Plan& plan_;
  cvl::ProgramT out_;
  std::map<std::string, size_t> symbol_numbers_;
  std::map<std::string, uint32_t> sizes_;
  std::map<std::tuple<std::string, int, std::string, std::string, std::string>, uint32_t> locations_;
};

}  // namespace

std::vector<uint8_t> serialize(const plan::Plan& plan, ConstantHashes hashes) { return Serializer(plan).run(hashes); }

Variant make_variant(const plan::Plan& plan, const TargetInfo& target, std::vector<uint8_t> code) {
  Variant variant;
  variant.name = target.name;
  variant.arch = target.arch == Arch::aarch64 ? CUVIL_ARCH_AARCH64 : CUVIL_ARCH_X86_64;
  variant.features = target.features;
  variant.program = serialize(plan, ConstantHashes::computed);
  variant.code = std::move(code);
  for (const ir::Tensor& t : plan.constants) variant.constants.emplace_back(t.raw(), static_cast<size_t>(t.bytes()));
  return variant;
}

}  // namespace cuvil::artifact
