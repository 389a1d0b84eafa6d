// A kernel as the interpreter runs it: straight code over a frame of values, every variable a fixed place in it.
// Private to compile_program.cpp and interpret*.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/kernel/expr_rules.h"
#include "core/kernel/ir.h"
#include "core/kernel/scalar.h"

namespace cuvil::kernel {

/// One step. dst, a, b, c are byte offsets in the frame.
enum class Code : uint8_t {
  lanes,  ///< function(dst, a, b, c, count)
  // the commonest scalars, without the call
  add_i64,
  mul_i64,
  lt_i64,
  and_bool,
  add_f32,
  mul_f32,
  fma_f32,
  broadcast,   ///< a (imm bytes) into count lanes
  ramp,        ///< a + i * b
  shuffle,     ///< lanes of imm bytes from a and b, picks tables[c]
  reduce,      ///< dst = op over count lanes of a (imm: reduction number)
  dot_i8,      ///< dst = a + dot(b, c); imm: b is unsigned
  dot_bf16,    ///< as dot_i8
  load,        ///< one element by scalar indices; a: access
  load_lanes,  ///< the general load
  store,       ///< as load, from b
  store_lanes,
  alloc,        ///< buffer a becomes uninitialised
  loop_enter,   ///< dst = a; past the loop by imm unless dst < b
  loop_next,    ///< dst += imm; back by c steps if dst < b
  jump,         ///< by imm
  jump_unless,  ///< by imm unless the bool a
  threads,      ///< runs the next imm steps as the threads of nest a, in lock-step between barriers
  barrier,      ///< inside threads: stops the thread here
  fail,         ///< returns imm
  end,
};

struct Step {
  Code code = Code::end;
  uint32_t count = 1;
  uint32_t dst = 0, a = 0, b = 0, c = 0;
  int64_t imm = 0;
  LaneFn function = nullptr;
};

/// How a load or store finds its elements.
struct AccessPlan {
  enum class Form : uint8_t { element, contiguous, gather };
  uint32_t buffer = 0;
  Form form = Form::element;
  uint32_t lanes = 1;  ///< of the value
  bool masked = false;
  uint32_t mask = 0;
  uint32_t indices[kMaxRank] = {};  ///< frame offsets
  std::string what;                 ///< "load of a", for errors
};

/// A buffer's place and shape are known when the kernel runs.
struct BufferPlan {
  Buffer buffer;
  int parameter = -1;  ///< or an alloc
  uint32_t element_bytes = 0;
  std::vector<uint32_t> extents, strides;  ///< frame offsets; strides empty = row-major
  bool tracked = false;                    ///< reads of what was never written are found
  bool per_thread = false;                 ///< allocated inside a nest of gpu_thread loops
};

struct ThreadNest {
  std::vector<uint32_t> variables;
  std::vector<int64_t> extents;
};

struct PhasePlan {
  size_t begin = 0;                                 ///< first step
  uint32_t task = 0, task_begin = 0, task_end = 0;  ///< frame offsets; the count of tasks is computed to task_count
  uint32_t task_count = 0;
};

struct ProgramCode {
  std::string kernel;
  std::vector<Step> sizes;  ///< computes extents, strides and task counts from the dims, ends with `end`
  std::vector<Step> steps;
  std::vector<PhasePlan> phases;
  std::vector<AccessPlan> accesses;
  std::vector<BufferPlan> buffers;
  std::vector<std::vector<int>> shuffles;
  std::vector<ThreadNest> nests;
  std::vector<uint32_t> dims;        ///< frame offsets
  std::vector<unsigned char> frame;  ///< initial contents: constants
};

/// The kernel must obey verify().
ProgramCode compile_program(const Kernel& kernel);

}  // namespace cuvil::kernel
