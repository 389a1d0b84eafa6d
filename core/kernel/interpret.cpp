// Runs compiled steps (program.h): memory, parameters, phases. The steps themselves are in interpret_steps.cpp.
#include "core/kernel/interpret.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/kernel/machine.h"
#include "core/kernel/verify.h"

namespace cuvil::kernel {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 40;

int64_t at(const std::vector<unsigned char>& frame, uint32_t place) {
  int64_t v;
  std::memcpy(&v, frame.data() + place, 8);
  return v;
}

/// Extents and strides from the frame; returns the elements that memory must hold.
int64_t shape_of(const ProgramCode& code, const BufferPlan& plan, const std::vector<unsigned char>& frame,
                 BufferState& state) {
  auto fail = [&](const char* what) {
    throw_internal("kernel " + code.kernel + ", buffer " + plan.buffer->name + ": " + what);
  };
  state.rank = static_cast<uint32_t>(plan.extents.size());
  state.scalar_bytes = static_cast<uint32_t>(size_of(plan.buffer->type.dtype));
  state.lanes = plan.buffer->type.lanes;
  state.row_major = plan.strides.empty();
  bool empty = false;
  for (uint32_t d = 0; d < state.rank; ++d) {
    state.extents[d] = at(frame, plan.extents[d]);
    if (state.extents[d] < 0) fail("an extent is negative");
    empty = empty || state.extents[d] == 0;
  }
  int64_t elements = 1;
  for (uint32_t d = state.rank; d-- > 0;) {
    state.strides[d] = state.row_major ? elements : at(frame, plan.strides[d]);
    if (state.row_major && !empty && (__builtin_mul_overflow(elements, state.extents[d], &elements)))
      fail("its size leaves 64 bits");
  }
  if (!state.row_major) {
    int64_t last = 0;
    for (uint32_t d = 0; d < state.rank && !empty; ++d) {
      int64_t reach = 0;
      if (state.strides[d] < 0) fail("a stride is negative");
      if (__builtin_mul_overflow(state.extents[d] - 1, state.strides[d], &reach) ||
          __builtin_add_overflow(last, reach, &last))
        fail("its size leaves 64 bits");
    }
    elements = last + 1;
  }
  state.elements = empty ? 0 : elements;
  if (state.elements > kMostBytes / (state.scalar_bytes * state.lanes)) fail("it is larger than any memory");
  return state.elements;
}

/// Everything of one run.
class Run {
 public:
  Run(const ProgramCode& code, std::span<const int64_t> dims) : code_(code), frame_(code.frame) {
    CUVIL_CHECK(dims.size() == code.dims.size(), "kernel " + code.kernel + " has " + std::to_string(code.dims.size()) +
                                                     " dims, given " + std::to_string(dims.size()));
    for (size_t i = 0; i < dims.size(); ++i) set(code.dims[i], dims[i]);
    machine_ = {&code, frame_.data(), nullptr};
    run_steps(machine_, code.sizes.data());
    states_.resize(code.buffers.size());
    machine_.buffers = states_.data();
  }

  void allocate(bool track_parameters) {
    for (size_t i = 0; i < states_.size(); ++i) {
      const BufferPlan& plan = code_.buffers[i];
      BufferState& s = states_[i];
      const int64_t elements = shape_of(code_, plan, frame_, s);
      const auto scalars = static_cast<size_t>(elements) * s.lanes;
      if (plan.parameter < 0) {
        memory_.emplace_back(new unsigned char[scalars * s.scalar_bytes + 64]());
        s.data = memory_.back().get();
      }
      if (plan.tracked && (plan.parameter < 0 || track_parameters)) {
        stamps_.emplace_back(scalars);
        s.stamps = stamps_.back().data();
        s.generation = 1;
      }
    }
  }

  void bind(std::span<const Argument> arguments) {
    const auto parameters = static_cast<size_t>(std::count_if(code_.buffers.begin(), code_.buffers.end(),
                                                              [](const BufferPlan& b) { return b.parameter >= 0; }));
    CUVIL_CHECK(arguments.size() == parameters, "kernel " + code_.kernel + " has " + std::to_string(parameters) +
                                                    " parameters, given " + std::to_string(arguments.size()));
    for (size_t i = 0; i < states_.size(); ++i) {
      const int parameter = code_.buffers[i].parameter;
      if (parameter < 0) continue;
      BufferState& s = states_[i];
      const Argument& a = arguments[static_cast<size_t>(parameter)];
      const int64_t bytes = s.elements * s.scalar_bytes;
      CUVIL_CHECK(a.bytes >= bytes && (a.data || bytes == 0),
                  "kernel " + code_.kernel + ", parameter " + code_.buffers[i].buffer->name + " takes " +
                      std::to_string(bytes) + " bytes, given " + std::to_string(a.bytes));
      s.data = static_cast<unsigned char*>(a.data);
    }
  }

  int32_t phase(const PhasePlan& p, int64_t begin, int64_t end) {
    set(p.task_begin, begin);
    set(p.task_end, end);
    const Stop stop = run_steps(machine_, code_.steps.data() + p.begin);
    return stop.failed ? stop.code : 0;
  }
  int32_t phase(const PhasePlan& p) { return phase(p, 0, at(frame_, p.task_count)); }
  BufferState& state(size_t i) { return states_[i]; }

 private:
  void set(uint32_t place, int64_t value) { std::memcpy(frame_.data() + place, &value, 8); }

  const ProgramCode& code_;
  std::vector<unsigned char> frame_;
  std::vector<BufferState> states_;
  std::vector<std::unique_ptr<unsigned char[]>> memory_;
  std::vector<std::vector<uint32_t>> stamps_;
  Machine machine_;
};

}  // namespace

Interpreter::Interpreter(const Kernel& kernel) {
  verify(kernel);
  code_ = std::make_unique<const ProgramCode>(compile_program(kernel));
}
Interpreter::~Interpreter() = default;
Interpreter::Interpreter(Interpreter&&) noexcept = default;
Interpreter& Interpreter::operator=(Interpreter&&) noexcept = default;

int32_t Interpreter::run(std::span<const Argument> arguments, std::span<const int64_t> dims) const {
  Run run(*code_, dims);
  run.allocate(true);
  run.bind(arguments);
  for (const PhasePlan& p : code_->phases)
    if (const int32_t code = run.phase(p)) return code;
  return 0;
}

int32_t Interpreter::run_tasks(size_t phase, const void* const* buffers, std::span<const int64_t> dims,
                               int64_t task_begin, int64_t task_end) const {
  Run run(*code_, dims);
  run.allocate(false);
  for (size_t i = 0; i < code_->buffers.size(); ++i)
    if (const int p = code_->buffers[i].parameter; p >= 0)
      run.state(i).data = static_cast<unsigned char*>(const_cast<void*>(buffers[p]));
  return run.phase(code_->phases.at(phase), task_begin, task_end);
}

int32_t interpret(const Kernel& kernel, std::span<const Argument> arguments, std::span<const int64_t> dims) {
  return Interpreter(kernel).run(arguments, dims);
}

}  // namespace cuvil::kernel
