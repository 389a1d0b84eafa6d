// A program as the executor runs it: the FlatBuffer, validated and decoded into flat tables. Immutable.
#pragma once

#include <cstdint>

#include "core/abi/cvl_file.h"
#include "core/abi/cvl_generated.h"
#include "cuvil/runtime.h"
#include "runtime/memory.h"

namespace cuvil::runtime {

struct HostOperator;

inline constexpr int64_t kMaxBytes = int64_t{1} << 46;  ///< of one buffer, of scratch
inline constexpr uint32_t kMaxRank = 32;

/// What a size program depends on.
enum class SizeClass : uint8_t { constant, shapes, data };

struct Symbol {
  const char* name;
  uint32_t input, axis;  ///< where it is read, or
  uint32_t step;         ///< the host operator that sets it
  uint32_t upper;        ///< then: size program of its largest value
  int64_t min, max;
};

struct Tensor {
  cuvil_tensor_info info;
  const uint32_t* dims;  ///< size programs
  uint32_t buffer;       ///< kNone: an input that nothing reads
  bool data_dependent;   ///< some dimension is known only after the run
  const uint8_t* fixed;  ///< an input that must have these elements, else null
  uint32_t fixed_bytes;
};

struct Buffer {
  cvl::BufferKind kind;
  uint32_t index, bytes, offset, first, last;
  uint32_t base;  ///< the buffer whose memory it is: itself, or the one it is a view of
  int64_t arena_offset;
};

struct Argument {
  uint32_t buffer, offset, bytes;
};

struct Operand {
  uint32_t buffer, offset, ndim;
  cuvil_dtype dtype;
  const uint32_t* dims;
};

struct Step {
  const char* label;
  const char* name;  ///< kernel's or host operator's
  uint32_t location;
  const HostOperator* host;  ///< null: a kernel, or
  bool jump;                 ///< goes on with step `target`; with an operand only if that is false
  uint32_t target;
  uint32_t function;  ///< kernel: number of its first phase in the table of functions
  uint32_t phases;
  const uint32_t* tasks;
  const uint32_t* dims;
  uint32_t dim_count, scratch;
  const Argument* arguments;
  uint32_t argument_count;
  const Operand* operands;  ///< host: inputs, then outputs
  uint32_t input_count, output_count;
  const uint32_t* symbols;  ///< host: that it sets
  uint32_t symbol_count;
  const cvl::Step* source;
};

struct Kernel {
  const char* name;
  uint32_t first_function, phases;
};

struct Program {
  Array<uint64_t> bytes;  ///< the FlatBuffer
  const cvl::Program* source = nullptr;

  const cvl::SizeOp* size_ops = nullptr;
  const cvl::SizeRange* sizes = nullptr;
  uint32_t size_count = 0;
  Array<SizeClass> size_class;

  Array<Symbol> symbols;
  Array<Tensor> inputs, outputs;
  Array<Buffer> buffers;
  Array<Kernel> kernels;
  Array<Step> steps;
  Array<Argument> arguments;
  Array<Operand> operands;
  Array<uint32_t> arena;             ///< buffers in the arena
  Array<uint32_t> requirement_step;  ///< of each requirement: the step after which it can be checked; kNone: before
  uint32_t function_count = 0;
  uint32_t max_arguments = 0, max_dims = 0, max_operands = 0, max_operand_dims = 0;
  bool placed = false;  ///< all arena buffers have fixed offsets
  bool depends_on_shapes = false, depends_on_data = false;
  int64_t weight_bytes = 0;

  Array<int64_t> dim_values;  ///< of inputs and outputs for cuvil_tensor_info
  Array<const char*> dim_texts;
};

/// Copies, verifies and decodes a program. Checks every number in it that does not depend on shapes.
cuvil_status load_program(const uint8_t* bytes, size_t count, Program* program);

/// "net.py:12 in forward (layer1.conv2) 'h'" of a location's number; "" if there is none.
const char* format_location(const Program& program, uint32_t location, char* text, size_t room);

}  // namespace cuvil::runtime
