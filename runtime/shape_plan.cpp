#include "runtime/shape_plan.h"

#include "core/abi/place.h"
#include "runtime/dtypes.h"
#include "runtime/error.h"
#include "runtime/size_program.h"
#include "runtime/thread_pool.h"

namespace cuvil::runtime {

namespace {

using cvl::kNone;

cuvil_status evaluate(const Program& p, uint32_t size, const int64_t* symbols, int64_t* value) {
  const cvl::SizeRange& range = p.sizes[size];
  switch (run_size_program(p.size_ops + range.begin(), range.count(), symbols, value)) {
    case SizeError::overflow:
      return fail(CUVIL_SHAPE_ERROR, "the inputs' shapes are too large: size %u does not fit in 64 bits", size);
    case SizeError::divisor:
      return fail(CUVIL_SHAPE_ERROR, "the inputs' shapes are not possible: size %u divides by zero or less", size);
    default:
      return CUVIL_OK;
  }
}

/// Bytes of a row-major tensor; -1 if a dimension is negative or the product too large.
int64_t tensor_bytes(const uint32_t* dims, uint32_t rank, const int64_t* sizes, unsigned dtype) {
  int64_t bytes = dtype_bytes(dtype);
  bool empty = false;
  for (uint32_t i = 0; i < rank; ++i) {
    const int64_t d = sizes[dims[i]];
    if (d < 0) return -1;
    empty |= d == 0;
    if (d > 0 && (__builtin_mul_overflow(bytes, d, &bytes) || bytes > kMaxBytes)) return -1;
  }
  return empty ? 0 : bytes;
}

class Checker {
 public:
  Checker(const Program& program, const ShapePlan& plan) : p_(program), sizes_(plan.sizes) {}

  cuvil_status run() {
    for (uint32_t i = 0; i < p_.buffers.size(); ++i)
      if (const cuvil_status status = buffer(i)) return status;
    for (const Tensor& t : p_.inputs)
      if (const cuvil_status status = border(t, "input")) return status;
    for (const Tensor& t : p_.outputs)
      if (const cuvil_status status = border(t, "output")) return status;
    for (uint32_t i = 0; i < p_.steps.size(); ++i)
      if (const cuvil_status status = p_.steps[i].host || p_.steps[i].jump ? host(i) : kernel(i)) return status;
    return CUVIL_OK;
  }

 private:
  int64_t value(uint32_t size) const { return size == kNone ? 0 : sizes_[size]; }
  int64_t bytes(uint32_t buffer) const { return sizes_[p_.buffers[buffer].bytes]; }

  cuvil_status buffer(uint32_t i) const {
    const Buffer& b = p_.buffers[i];
    const int64_t n = bytes(i);
    if (n < 0 || n > kMaxBytes)
      return fail(CUVIL_SHAPE_ERROR, "the inputs' shapes are not possible: buffer %u would take %lld bytes", i,
                  static_cast<long long>(n));
    if (b.kind == cvl::BufferKind::constant && static_cast<uint64_t>(n) > p_.source->constants()->Get(b.index)->bytes())
      return fail(CUVIL_SHAPE_ERROR, "buffer %u is larger than its constant", i);
    if (b.kind == cvl::BufferKind::view) {
      const int64_t offset = value(b.offset), room = bytes(b.base);
      if (offset < 0 || offset > room || n > room - offset)
        return fail(CUVIL_SHAPE_ERROR, "buffer %u lies outside the buffer that it is a view of", i);
    }
    return CUVIL_OK;
  }

  cuvil_status border(const Tensor& t, const char* what) const {
    const int64_t n = tensor_bytes(t.dims, static_cast<uint32_t>(t.info.ndim), sizes_, t.info.dtype);
    if (n < 0)
      return fail(CUVIL_SHAPE_ERROR,
                  "the inputs' shapes are not possible: %s '%.80s' would have a negative or too large "
                  "dimension",
                  what, t.info.name);
    if (t.buffer != kNone && bytes(t.buffer) != n)
      return fail(CUVIL_SHAPE_ERROR, "%s '%.80s' has %lld bytes, its buffer %lld", what, t.info.name,
                  static_cast<long long>(n), static_cast<long long>(bytes(t.buffer)));
    return CUVIL_OK;
  }

  cuvil_status kernel(uint32_t index) const {
    const Step& s = p_.steps[index];
    for (uint32_t i = 0; i < s.phases; ++i)
      if (value(s.tasks[i]) < 0 || value(s.tasks[i]) > kMaxTasks)
        return fail(CUVIL_SHAPE_ERROR, "step %u ('%.80s') has an impossible number of tasks", index, s.label);
    if (value(s.scratch) < 0 || value(s.scratch) > kMaxBytes)
      return fail(CUVIL_SHAPE_ERROR, "step %u ('%.80s') needs an impossible amount of scratch", index, s.label);
    for (uint32_t i = 0; i < s.argument_count; ++i) {
      const Argument& a = s.arguments[i];
      const int64_t offset = value(a.offset), room = bytes(a.buffer), n = value(a.bytes);
      if (offset < 0 || offset > room || n < 0 || n > room - offset)
        return fail(CUVIL_SHAPE_ERROR, "argument %u of step %u ('%.80s') lies outside its buffer", i, index, s.label);
    }
    return CUVIL_OK;
  }

  cuvil_status host(uint32_t index) const {
    const Step& s = p_.steps[index];
    for (uint32_t i = 0; i < s.input_count + s.output_count; ++i) {
      const Operand& o = s.operands[i];
      const int64_t n = tensor_bytes(o.dims, o.ndim, sizes_, o.dtype), offset = value(o.offset), room = bytes(o.buffer);
      const int64_t start = value(p_.buffers[o.buffer].offset) + offset;  // of a view: within its buffer
      if (n < 0 || offset < 0 || offset > room || n > room - offset || start % dtype_bytes(o.dtype) != 0)
        return fail(CUVIL_SHAPE_ERROR, "operand %u of step %u ('%.80s') lies outside its buffer", i, index, s.label);
      if (s.jump && n != 1) return fail(CUVIL_SHAPE_ERROR, "step %u ('%.80s') jumps on no single bool", index, s.label);
    }
    return CUVIL_OK;
  }

  const Program& p_;
  const int64_t* sizes_;
};

cuvil_status place_arena(const Program& p, ShapePlan* plan, PlanWork* work) {
  const size_t n = p.arena.size();
  auto* items = reinterpret_cast<PlaceItem*>(work->items.data());
  int64_t sum = 0;
  for (size_t i = 0; i < n; ++i) {
    const Buffer& b = p.buffers[p.arena[i]];
    items[i] = {plan->sizes[b.bytes], b.first, b.last};
    if (__builtin_add_overflow(sum, items[i].bytes + CUVIL_ALIGNMENT, &sum) || sum > int64_t{1} << 60)
      return fail(CUVIL_SHAPE_ERROR, "the inputs' shapes are too large for any memory");
  }
  const Placement placement =
      place(items, n, p.steps.size(), plan->arena_offsets, work->numbers.data(), work->values.data());
  plan->arena_bytes = placement.arena_bytes;
  plan->lower_bound = placement.lower_bound;
  if (!p.placed) return CUVIL_OK;
  plan->arena_bytes = 0;  // the compiler's places instead
  for (size_t i = 0; i < n; ++i) {
    plan->arena_offsets[i] = p.buffers[p.arena[i]].arena_offset;
    const int64_t end = plan->arena_offsets[i] + detail::place_size(items[i]);
    if (end > plan->arena_bytes) plan->arena_bytes = end;
  }
  return CUVIL_OK;
}

/// Upper bounds of data-dependent symbols, then all sizes.
cuvil_status evaluate_sizes(const Program& p, ShapePlan* plan) {
  for (uint32_t i = 0; i < p.symbols.size(); ++i) {
    if (p.symbols[i].step == kNone) continue;
    if (const cuvil_status status = evaluate(p, p.symbols[i].upper, plan->symbols, &plan->symbols[i])) return status;
    if (plan->symbols[i] < 0)
      return fail(CUVIL_SHAPE_ERROR, "the upper bound of '%.80s' is negative", p.symbols[i].name);
  }
  for (uint32_t i = 0; i < p.size_count; ++i)
    if (const cuvil_status status = evaluate(p, i, plan->symbols, &plan->sizes[i])) return status;
  return CUVIL_OK;
}

}  // namespace

cuvil_status PlanWork::allocate(const Program& program) {
  const size_t n = program.arena.size();
  static_assert(sizeof(PlaceItem) == 2 * sizeof(uint64_t));
  if (!numbers.allocate(place_work_u32(n)) || !values.allocate(place_work_i64(n, program.steps.size())) ||
      !items.allocate(2 * n))
    return out_of_memory("the context", n * 16);
  return CUVIL_OK;
}

size_t plan_numbers(const Program& program) {
  return program.symbols.size() + program.size_count + program.arena.size();
}

cuvil_status evaluate_plan(const Program& p, ShapePlan* plan, PlanWork* work) {
  plan->valid = false;
  cuvil_status status = evaluate_sizes(p, plan);
  if (!status) status = Checker(p, *plan).run();
  if (!status) status = place_arena(p, plan, work);
  if (status == CUVIL_SHAPE_ERROR && !p.depends_on_shapes) return CUVIL_ARTIFACT_ERROR;
  if (status) return status;
  plan->scratch_bytes = 0;
  for (const Step& s : p.steps)
    if (s.scratch != kNone && plan->sizes[s.scratch] > plan->scratch_bytes)
      plan->scratch_bytes = plan->sizes[s.scratch];
  plan->valid = true;
  return CUVIL_OK;
}

cuvil_status update_sizes(const Program& p, const ShapePlan& plan, const int64_t* symbols, int64_t* sizes) {
  for (uint32_t i = 0; i < p.size_count; ++i) {
    if (p.size_class[i] != SizeClass::data) continue;
    if (const cuvil_status status = evaluate(p, i, symbols, &sizes[i])) return status;
    if (sizes[i] < 0 || sizes[i] > plan.sizes[i])
      return fail(CUVIL_INTERNAL_ERROR, "size %u is %lld, more than its planned %lld", i,
                  static_cast<long long>(sizes[i]), static_cast<long long>(plan.sizes[i]));
  }
  return CUVIL_OK;
}

}  // namespace cuvil::runtime
