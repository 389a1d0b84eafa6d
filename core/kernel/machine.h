// The state that steps run on. Private to interpret*.cpp.
#pragma once

#include "core/kernel/expr_rules.h"
#include "core/kernel/program.h"

namespace cuvil::kernel {

struct BufferState {
  unsigned char* data = nullptr;
  uint32_t rank = 0, scalar_bytes = 4, lanes = 1;
  bool row_major = true;
  int64_t elements = 0;
  int64_t extents[kMaxRank] = {}, strides[kMaxRank] = {};
  /// Per scalar, the generation in which it was written; an alloc begins a new one. Null: not watched.
  uint32_t* stamps = nullptr;
  uint32_t generation = 0;
};

struct Machine {
  const ProgramCode* code = nullptr;
  unsigned char* frame = nullptr;
  BufferState* buffers = nullptr;
};

/// Why steps stopped: at their end, at a barrier (and go on at `next`), or by a fail.
struct Stop {
  bool failed = false;
  int32_t code = 0;
  const Step* next = nullptr;
};
Stop run_steps(Machine& machine, const Step* step);

/// The general load and store (interpret_memory.cpp).
void load_lanes(Machine& machine, const AccessPlan& access, unsigned char* to);
void store_lanes(Machine& machine, const AccessPlan& access, const unsigned char* from);
void begin_generation(BufferState& buffer);
[[noreturn]] void report_index(const Machine& machine, const AccessPlan& access, size_t dimension, int64_t index);
[[noreturn]] void report_unwritten(const Machine& machine, const AccessPlan& access, int64_t scalar);

}  // namespace cuvil::kernel
