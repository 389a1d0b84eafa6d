#include "runtime/program.h"

#include <cstdio>

#include "runtime/dtypes.h"
#include "runtime/error.h"
#include "runtime/host_ops/host_op.h"
#include "runtime/size_program.h"

namespace cuvil::runtime {

namespace {

using cvl::kNone;

template <typename T>
uint32_t count_of(const flatbuffers::Vector<T>* v) {
  return v ? v->size() : 0;
}
/// Numbers of a FlatBuffer vector in place; valid on little-endian machines, the only ones there are.
const uint32_t* numbers(const flatbuffers::Vector<uint32_t>* v) {
  return v ? reinterpret_cast<const uint32_t*>(v->data()) : nullptr;
}
const char* text_of(const flatbuffers::String* s) { return s ? s->c_str() : ""; }

class Decoder {
 public:
  explicit Decoder(Program* program) : p_(*program), fb_(*program->source) {}

  cuvil_status run() {
    cuvil_status status = CUVIL_OK;
    (status = sizes_and_symbols()) || (status = tensors()) || (status = buffers()) || (status = kernels()) ||
        (status = steps()) || (status = borders()) || (status = requirements());
    return status;
  }

 private:
  static constexpr auto kBroken = CUVIL_ARTIFACT_ERROR;

  bool is_size(uint32_t n) const { return n < p_.size_count; }
  bool is_optional_size(uint32_t n) const { return n == kNone || is_size(n); }
  bool are_sizes(const flatbuffers::Vector<uint32_t>* v) const {
    for (uint32_t i = 0; i < count_of(v); ++i)
      if (!is_size(v->Get(i))) return false;
    return true;
  }

  cuvil_status sizes_and_symbols();
  cuvil_status tensors();
  cuvil_status tensor(const cvl::TensorInfo* source, const char* what, uint32_t index, Tensor* out);
  cuvil_status buffers();
  cuvil_status kernels();
  cuvil_status steps();
  cuvil_status kernel_step(uint32_t index, Step* step);
  cuvil_status host_step(uint32_t index, Step* step);
  cuvil_status jump_step(uint32_t index, Step* step);
  cuvil_status operands(uint32_t index, const flatbuffers::Vector<flatbuffers::Offset<cvl::Operand>>* source);
  cuvil_status touch(uint32_t step, uint32_t buffer);
  cuvil_status borders();
  cuvil_status requirements();

  Program& p_;
  const cvl::Program& fb_;
  uint32_t next_dim_ = 0, next_argument_ = 0, next_operand_ = 0, next_arena_ = 0;
};

cuvil_status Decoder::sizes_and_symbols() {
  const uint32_t symbols = count_of(fb_.symbols()), ops = count_of(fb_.size_ops());
  p_.size_count = count_of(fb_.sizes());
  // Vectors of structs are plain arrays.
  if (ops) p_.size_ops = reinterpret_cast<const cvl::SizeOp*>(fb_.size_ops()->Data());
  if (reinterpret_cast<uintptr_t>(p_.size_ops) % alignof(cvl::SizeOp) != 0)  // FlatBuffers' verifier does not look
    return fail(kBroken, "the size programs are not aligned");
  if (p_.size_count) p_.sizes = reinterpret_cast<const cvl::SizeRange*>(fb_.sizes()->Data());
  if (!p_.symbols.allocate(symbols) || !p_.size_class.allocate(p_.size_count))
    return out_of_memory("the program's symbols", p_.size_count);
  for (uint32_t i = 0; i < symbols; ++i) {
    const cvl::Symbol* s = fb_.symbols()->Get(i);
    p_.symbols[i] = {s->name()->c_str(), s->input(), s->axis(), s->step(), s->upper(), s->min(), s->max()};
    const bool by_input = s->input() != kNone;
    if (by_input == (s->step() != kNone)) return fail(kBroken, "symbol %u is not bound exactly once", i);
    if (by_input &&
        (s->input() >= count_of(fb_.inputs()) || s->axis() >= count_of(fb_.inputs()->Get(s->input())->dims())))
      return fail(kBroken, "symbol %u is bound to an input axis that does not exist", i);
    if (!by_input && (s->step() >= count_of(fb_.steps()) || !is_size(s->upper())))
      return fail(kBroken, "symbol %u is bound to a step that does not exist, or has no upper bound", i);
    if (s->min() < 0 || s->max() < s->min()) return fail(kBroken, "symbol %u has an empty range", i);
    p_.depends_on_shapes = true;
    p_.depends_on_data |= !by_input;
  }
  for (uint32_t i = 0; i < p_.size_count; ++i) {
    const uint32_t begin = p_.sizes[i].begin(), n = p_.sizes[i].count();
    int64_t highest;
    if (begin > ops || n > ops - begin || !check_size_program(p_.size_ops + begin, n, symbols, &highest))
      return fail(kBroken, "size program %u is malformed", i);
    for (uint32_t k = begin; k < begin + n; ++k) {
      if (p_.size_ops[k].op() != CUVIL_EXPR_SYMBOL) continue;
      const bool data = p_.symbols[static_cast<size_t>(p_.size_ops[k].operand())].step != kNone;
      if (data || p_.size_class[i] == SizeClass::constant)
        p_.size_class[i] = data ? SizeClass::data : SizeClass::shapes;
    }
    for (uint32_t s = 0; s < symbols; ++s)
      if (p_.symbols[s].step != kNone && p_.symbols[s].upper == i && highest >= s)
        return fail(kBroken, "the upper bound of symbol %u uses a later symbol", s);
  }
  return CUVIL_OK;
}

cuvil_status Decoder::tensor(const cvl::TensorInfo* source, const char* what, uint32_t index, Tensor* out) {
  const uint32_t rank = count_of(source->dims());
  if (!dtype_info(source->dtype())) return fail(kBroken, "%s %u has an unknown element type", what, index);
  if (rank > kMaxRank || !are_sizes(source->dims())) return fail(kBroken, "%s %u has a malformed shape", what, index);
  *out = {};
  out->dims = numbers(source->dims());
  out->buffer = kNone;
  out->info.name = source->name()->c_str();
  out->info.dtype = static_cast<cuvil_dtype>(source->dtype());
  out->info.ndim = static_cast<int32_t>(rank);
  if (const auto* fixed = source->fixed()) {
    out->fixed = fixed->data();
    out->fixed_bytes = fixed->size();
  }
  out->info.dims = p_.dim_values.data() + next_dim_;
  out->info.dim_texts = p_.dim_texts.data() + next_dim_;
  for (uint32_t i = 0; i < rank; ++i, ++next_dim_) {
    const SizeClass kind = p_.size_class[out->dims[i]];
    int64_t value = -1;
    if (kind == SizeClass::constant) {
      const cvl::SizeRange& range = p_.sizes[out->dims[i]];
      if (run_size_program(p_.size_ops + range.begin(), range.count(), nullptr, &value) != SizeError::none || value < 0)
        return fail(kBroken, "%s %u has a malformed shape", what, index);
    }
    out->data_dependent |= kind == SizeClass::data;
    p_.dim_values[next_dim_] = value;
    p_.dim_texts[next_dim_] = i < count_of(source->dim_texts()) ? source->dim_texts()->Get(i)->c_str() : "";
  }
  return CUVIL_OK;
}

cuvil_status Decoder::tensors() {
  const uint32_t inputs = count_of(fb_.inputs()), outputs = count_of(fb_.outputs());
  size_t dims = 0;
  for (uint32_t i = 0; i < inputs; ++i) dims += count_of(fb_.inputs()->Get(i)->dims());
  for (uint32_t i = 0; i < outputs; ++i) dims += count_of(fb_.outputs()->Get(i)->dims());
  if (!p_.inputs.allocate(inputs) || !p_.outputs.allocate(outputs) || !p_.dim_values.allocate(dims) ||
      !p_.dim_texts.allocate(dims))
    return out_of_memory("the program's tensors", dims);
  for (uint32_t i = 0; i < inputs; ++i) {
    if (const cuvil_status status = tensor(fb_.inputs()->Get(i), "input", i, &p_.inputs[i])) return status;
    if (p_.inputs[i].data_dependent) return fail(kBroken, "the shape of input %u depends on data", i);
  }
  for (uint32_t i = 0; i < outputs; ++i)
    if (const cuvil_status status = tensor(fb_.outputs()->Get(i), "output", i, &p_.outputs[i])) return status;
  return CUVIL_OK;
}

cuvil_status Decoder::buffers() {
  const uint32_t n = count_of(fb_.buffers()), steps = count_of(fb_.steps());
  uint32_t arena = 0, placed = 0;
  if (!p_.buffers.allocate(n)) return out_of_memory("the program's buffers", n);
  for (uint32_t i = 0; i < n; ++i) {
    const cvl::Buffer* b = fb_.buffers()->Get(i);
    p_.buffers[i] = {b->kind(), b->index(), b->bytes(), b->offset(), b->first(), b->last(), i, b->arena_offset()};
    if (!is_size(b->bytes()) || !is_optional_size(b->offset())) return fail(kBroken, "buffer %u has no size", i);
    if (b->kind() != cvl::BufferKind::view && b->offset() != kNone)
      return fail(kBroken, "buffer %u is no view but has an offset", i);
    const auto claim = [&](Array<Tensor>& tensors, const char* what) -> cuvil_status {
      if (b->index() >= tensors.size() || tensors[b->index()].buffer != kNone)
        return fail(kBroken, "buffer %u: %s %u does not exist or has two buffers", i, what, b->index());
      tensors[b->index()].buffer = i;
      return CUVIL_OK;
    };
    switch (b->kind()) {
      case cvl::BufferKind::arena:
        ++arena;
        placed += b->arena_offset() >= 0;
        if (b->first() > b->last() || b->last() >= steps) return fail(kBroken, "buffer %u has a malformed lifetime", i);
        if (b->arena_offset() < -1 || b->arena_offset() > kMaxBytes ||
            (b->arena_offset() > 0 && b->arena_offset() % 64))
          return fail(kBroken, "buffer %u has a malformed arena offset", i);
        if (b->arena_offset() >= 0 && p_.size_class[b->bytes()] != SizeClass::constant)
          return fail(kBroken, "buffer %u has a fixed place but no fixed size", i);
        break;
      case cvl::BufferKind::input:
        if (const cuvil_status status = claim(p_.inputs, "input")) return status;
        break;
      case cvl::BufferKind::output:
        if (const cuvil_status status = claim(p_.outputs, "output")) return status;
        break;
      case cvl::BufferKind::constant:
        if (b->index() >= count_of(fb_.constants())) return fail(kBroken, "buffer %u: no such constant", i);
        break;
      case cvl::BufferKind::view:
        if (b->index() >= n || fb_.buffers()->Get(b->index())->kind() == cvl::BufferKind::view)
          return fail(kBroken, "buffer %u is a view of a view or of nothing", i);
        p_.buffers[i].base = b->index();
        break;
      default:
        return fail(kBroken, "buffer %u is of an unknown kind", i);
    }
  }
  if (placed != 0 && placed != arena) return fail(kBroken, "only some arena buffers have a fixed place");
  p_.placed = placed == arena;
  if (!p_.arena.allocate(arena)) return out_of_memory("the program's buffers", arena);
  for (uint32_t i = 0; i < n; ++i)
    if (p_.buffers[i].kind == cvl::BufferKind::arena) p_.arena[next_arena_++] = i;
  for (uint32_t i = 0; i < count_of(fb_.constants()); ++i) {
    const uint64_t bytes = fb_.constants()->Get(i)->bytes();
    if (bytes > uint64_t{kMaxBytes}) return fail(kBroken, "constant %u is too large", i);
    p_.weight_bytes += static_cast<int64_t>(bytes);
  }
  return CUVIL_OK;
}

cuvil_status Decoder::kernels() {
  const uint32_t n = count_of(fb_.kernels());
  if (!p_.kernels.allocate(n)) return out_of_memory("the program's kernels", n);
  for (uint32_t i = 0; i < n; ++i) {
    const cvl::Kernel* k = fb_.kernels()->Get(i);
    if (k->phases() == 0 || k->phases() > 1024) return fail(kBroken, "kernel %u has no or too many phases", i);
    p_.kernels[i] = {k->name()->c_str(), p_.function_count, k->phases()};
    p_.function_count += k->phases();
  }
  return CUVIL_OK;
}

/// A step may touch an arena buffer only while it is alive.
cuvil_status Decoder::touch(uint32_t step, uint32_t buffer) {
  if (buffer >= p_.buffers.size()) return fail(kBroken, "step %u uses a buffer that does not exist", step);
  const Buffer& base = p_.buffers[p_.buffers[buffer].base];
  if (base.kind == cvl::BufferKind::arena && (step < base.first || step > base.last))
    return fail(kBroken, "step %u uses buffer %u outside its lifetime", step, buffer);
  return CUVIL_OK;
}

cuvil_status Decoder::kernel_step(uint32_t index, Step* step) {
  const cvl::Step& s = *step->source;
  const uint32_t arguments = count_of(s.arguments());
  if (s.kernel() >= p_.kernels.size()) return fail(kBroken, "step %u uses a kernel that does not exist", index);
  const Kernel& kernel = p_.kernels[s.kernel()];
  if (count_of(s.tasks()) != kernel.phases || !are_sizes(s.tasks()) || !are_sizes(s.dims()) ||
      !is_optional_size(s.scratch()) || s.host() || count_of(s.symbols()) || count_of(s.inputs()) ||
      count_of(s.outputs()))
    return fail(kBroken, "step %u is a malformed kernel launch", index);
  step->name = kernel.name;
  step->function = kernel.first_function;
  step->phases = kernel.phases;
  step->tasks = numbers(s.tasks());
  step->dims = numbers(s.dims());
  step->dim_count = count_of(s.dims());
  step->scratch = s.scratch();
  step->arguments = p_.arguments.data() + next_argument_;
  step->argument_count = arguments;
  for (uint32_t i = 0; i < arguments; ++i) {
    const cvl::Argument* a = s.arguments()->Get(i);
    if (const cuvil_status status = touch(index, a->buffer())) return status;
    if (!is_optional_size(a->offset()) || !is_optional_size(a->bytes()))
      return fail(kBroken, "argument %u of step %u is malformed", i, index);
    p_.arguments[next_argument_++] = {a->buffer(), a->offset(), a->bytes()};
  }
  if (arguments > p_.max_arguments) p_.max_arguments = arguments;
  if (step->dim_count > p_.max_dims) p_.max_dims = step->dim_count;
  return CUVIL_OK;
}

cuvil_status Decoder::operands(uint32_t index, const flatbuffers::Vector<flatbuffers::Offset<cvl::Operand>>* source) {
  for (uint32_t i = 0; i < count_of(source); ++i) {
    const cvl::Operand* o = source->Get(i);
    const uint32_t rank = count_of(o->dims());
    if (const cuvil_status status = touch(index, o->buffer())) return status;
    if (!is_optional_size(o->offset()) || !are_sizes(o->dims()) || rank > kMaxRank || !dtype_info(o->dtype()))
      return fail(kBroken, "operand %u of step %u is malformed", i, index);
    p_.operands[next_operand_++] = {o->buffer(), o->offset(), rank, static_cast<cuvil_dtype>(o->dtype()),
                                    numbers(o->dims())};
  }
  return CUVIL_OK;
}

cuvil_status Decoder::host_step(uint32_t index, Step* step) {
  const cvl::Step& s = *step->source;
  step->name = s.host()->c_str();
  step->host = find_host_operator(step->name);
  if (!step->host)
    return fail(CUVIL_UNSUPPORTED_ERROR, "this runtime (%s) has no host operator '%.80s'; use a newer one",
                CUVIL_VERSION, step->name);
  step->input_count = count_of(s.inputs());
  step->output_count = count_of(s.outputs());
  step->symbols = numbers(s.symbols());
  step->symbol_count = count_of(s.symbols());
  step->operands = p_.operands.data() + next_operand_;
  if (step->input_count != step->host->inputs || step->output_count != step->host->outputs ||
      step->symbol_count != step->host->symbols || count_of(s.arguments()) || count_of(s.tasks()))
    return fail(kBroken, "step %u: '%s' has the wrong number of operands", index, step->name);
  for (uint32_t i = 0; i < step->symbol_count; ++i)
    if (step->symbols[i] >= p_.symbols.size() || p_.symbols[step->symbols[i]].step != index)
      return fail(kBroken, "step %u sets a symbol that is not its own", index);
  cuvil_status status;
  if ((status = operands(index, s.inputs())) || (status = operands(index, s.outputs()))) return status;
  const uint32_t n = step->input_count + step->output_count;
  if (n > 64) return fail(kBroken, "step %u has too many operands", index);
  for (uint32_t i = step->input_count; i < n; ++i) {
    const cvl::BufferKind kind = p_.buffers[p_.buffers[step->operands[i].buffer].base].kind;
    if (kind != cvl::BufferKind::arena && kind != cvl::BufferKind::output)
      return fail(kBroken, "step %u writes to an input or a constant", index);
  }
  HostTensor described[64];
  uint32_t dims = 0;
  for (uint32_t i = 0; i < n; ++i) {
    described[i] = {nullptr, step->operands[i].dtype, step->operands[i].ndim, nullptr};
    dims += step->operands[i].ndim;
  }
  if (const char* reason = step->host->check(described, described + step->input_count))
    return fail(kBroken, "step %u: '%s': %s", index, step->name, reason);
  if (n > p_.max_operands) p_.max_operands = n;
  if (dims > p_.max_operand_dims) p_.max_operand_dims = dims;
  return CUVIL_OK;
}

cuvil_status Decoder::jump_step(uint32_t index, Step* step) {
  const cvl::Step& s = *step->source;
  step->name = "jump";
  step->jump = true;
  step->target = s.target();
  step->input_count = count_of(s.inputs());
  step->operands = p_.operands.data() + next_operand_;
  if (s.target() > count_of(fb_.steps()) || step->input_count > 1 || count_of(s.outputs()) || count_of(s.symbols()) ||
      count_of(s.arguments()) || count_of(s.tasks()))
    return fail(kBroken, "step %u is a malformed jump", index);
  if (const cuvil_status status = operands(index, s.inputs())) return status;
  if (step->input_count == 1 && step->operands[0].dtype != CUVIL_BOOL)
    return fail(kBroken, "step %u jumps on what is no bool", index);
  return CUVIL_OK;
}

cuvil_status Decoder::steps() {
  const uint32_t n = count_of(fb_.steps());
  size_t arguments = 0, operand_count = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const cvl::Step* s = fb_.steps()->Get(i);
    arguments += count_of(s->arguments());
    operand_count += count_of(s->inputs()) + count_of(s->outputs());
  }
  if (!p_.steps.allocate(n) || !p_.arguments.allocate(arguments) || !p_.operands.allocate(operand_count))
    return out_of_memory("the program's steps", n);
  uint32_t data_symbols = 0;
  for (uint32_t i = 0; i < n; ++i) {
    Step& step = p_.steps[i];
    step.source = fb_.steps()->Get(i);
    step.label = text_of(step.source->label());
    step.location = step.source->location();
    step.scratch = kNone;
    if (step.location != kNone && step.location >= count_of(fb_.locations()))
      return fail(kBroken, "step %u has a location that does not exist", i);
    const bool kernel = step.source->kernel() != kNone, jump = step.source->target() != kNone;
    if (!kernel && !step.source->host() && !jump) return fail(kBroken, "step %u does nothing", i);
    if (jump && (kernel || step.source->host())) return fail(kBroken, "step %u is two things at once", i);
    if (const cuvil_status status = kernel ? kernel_step(i, &step) : jump ? jump_step(i, &step) : host_step(i, &step))
      return status;
    for (uint32_t k = 0; k < step.symbol_count; ++k)
      for (uint32_t j = 0; j < k; ++j)
        if (step.symbols[j] == step.symbols[k]) return fail(kBroken, "step %u sets a symbol twice", i);
    data_symbols += step.symbol_count;
  }
  for (const Symbol& symbol : p_.symbols) data_symbols -= symbol.step != kNone;
  return data_symbols == 0 ? CUVIL_OK : fail(kBroken, "a symbol is set by no step");
}

cuvil_status Decoder::borders() {
  for (const Tensor& t : p_.outputs)
    if (t.buffer == kNone) return fail(kBroken, "output '%.80s' has no buffer", t.info.name);
  return CUVIL_OK;
}

cuvil_status Decoder::requirements() {
  const uint32_t n = count_of(fb_.requirements());
  if (!p_.requirement_step.allocate(n)) return out_of_memory("the program's requirements", n);
  for (uint32_t i = 0; i < n; ++i) {
    const cvl::Requirement* r = fb_.requirements()->Get(i);
    if (!is_size(r->left()) || !is_size(r->right()) ||
        (r->location() != kNone && r->location() >= count_of(fb_.locations())))
      return fail(kBroken, "requirement %u is malformed", i);
    p_.requirement_step[i] = kNone;
    for (const uint32_t size : {r->left(), r->right()}) {
      const cvl::SizeRange& range = p_.sizes[size];
      for (uint32_t k = range.begin(); k < range.begin() + range.count(); ++k) {
        if (p_.size_ops[k].op() != CUVIL_EXPR_SYMBOL) continue;
        const uint32_t step = p_.symbols[static_cast<size_t>(p_.size_ops[k].operand())].step;
        if (step != kNone && (p_.requirement_step[i] == kNone || step > p_.requirement_step[i]))
          p_.requirement_step[i] = step;
      }
    }
  }
  return CUVIL_OK;
}

}  // namespace

cuvil_status load_program(const uint8_t* bytes, size_t count, Program* program) {
  // FlatBuffers' own limit; also keeps every offset in it within 32 bits.
  if (count < 8 || count > size_t{1} << 30) return fail(CUVIL_ARTIFACT_ERROR, "the program has %zu bytes", count);
  if (!program->bytes.allocate((count + 7) / 8)) return out_of_memory("the program", count);
  memcpy(program->bytes.data(), bytes, count);
  const auto* copy = reinterpret_cast<const uint8_t*>(program->bytes.data());
  flatbuffers::Verifier verifier(copy, count, 16, 10000000);
  if (!verifier.VerifyBuffer<cvl::Program>(nullptr))
    return fail(CUVIL_ARTIFACT_ERROR, "the program is not a well-formed FlatBuffer");
  program->source = flatbuffers::GetRoot<cvl::Program>(copy);
  return Decoder(program).run();
}

const char* format_location(const Program& program, uint32_t location, char* text, size_t room) {
  if (room == 0) return "";
  text[0] = 0;
  if (location == kNone || location >= count_of(program.source->locations())) return text;
  const cvl::Location* l = program.source->locations()->Get(location);
  size_t used = 0;
  const auto add = [&](const char* before, const flatbuffers::String* s, const char* after) {
    if (!s || s->size() == 0 || used + 1 >= room) return;
    const int n = snprintf(text + used, room - used, "%s%s%s%s", used ? " " : "", before, s->c_str(), after);
    if (n > 0) used = used + static_cast<size_t>(n) < room ? used + static_cast<size_t>(n) : room - 1;
  };
  char line[32] = "";
  if (l->line() > 0) snprintf(line, sizeof(line), ":%d", l->line());
  add("", l->file(), line);
  add("in ", l->function(), "");
  add("(", l->module_path(), ")");
  add("'", l->variable(), "'");
  return text;
}

}  // namespace cuvil::runtime
