// The plan: kernels, their launches in order, and where every byte lives. What the executor (runtime/) carries out,
// in the compiler's terms; core/artifact writes it as a program of core/abi/cvl.fbs, for the JIT and for .cvl alike.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/target_info.h"
#include "core/ir/graph.h"
#include "core/kernel/ir.h"

namespace cuvil::plan {

/// A symbolic dimension is bound from the first input axis whose extent is exactly this symbol, or set by a host
/// operator whose output's shape depends on data.
struct Symbol {
  std::string name = {};
  int input = 0;
  int axis = 0;
  int step = -1;   ///< index of the host operator's step; input and axis do not count then
  Dim upper = {};  ///< largest value that the step may set, over symbols before this one
};

/// Inputs and outputs are plain row-major at the border.
struct Port {
  std::string name;
  DType dtype;
  Shape shape;
  int buffer;
  std::optional<ir::Tensor> fixed = std::nullopt;  ///< an input that must have this value
};

enum class BufferKind : uint8_t { input, output, constant, arena };
struct Buffer {
  std::string name;  ///< of the CIR value
  BufferKind kind;
  Dim bytes;
  int first_step = 0, last_step = 0;  ///< arena: inclusive lifetime
  /// Arena: offset if the plan is static, else -1 (the runtime places by place.h at each new shape).
  int64_t offset = -1;
  int view_of = -1;  ///< another buffer whose memory this is, at view_offset bytes
  Dim view_offset;
  int constant = -1;  ///< index into Plan::constants
};

/// A view inside a bigger buffer needs its strides only in the kernel; a launch sees just pointers.
struct Argument {
  int buffer;
  DType dtype = DType::f32;  ///< these two for host operators only: kernels know their parameters
  Shape shape = {};
};

struct Step {
  std::string name;  ///< of the CIR node(s), for people: "conv1+relu"
  int kernel = -1;   ///< index into Plan::kernels; -1: a host operator
  std::string host;  ///< name in the runtime's list; "" beside kernel -1: a jump
  int target = -1;   ///< jump: the step to go on with; with an argument (one bool) only where that is false
  ir::Attributes host_attributes;
  std::vector<Argument> arguments;   ///< kernel parameter order; host: inputs, then outputs
  int inputs = 0;                    ///< host: how many of them are inputs
  std::vector<std::string> symbols;  ///< the kernel's dims are the values of these; host: the symbols that it sets
  std::vector<Dim> tasks;            ///< per phase
  Dim scratch_bytes;                 ///< per thread
  std::string schedule;
  Location location;
  Dim flops, bytes;  ///< for reports: arithmetic, and compulsory memory traffic
};

/// Steps that run many times: memory that is used inside and outside of them is not reused in between.
struct Repeated {
  int first_step, last_step;
};

/// Sizes that the graph takes to be equal, e.g. two branches that are added: checked for every new shape.
struct Requirement {
  Dim left, right;
  std::string text;  ///< the message's first half
  Location location;
};

struct Plan {
  std::string name;
  std::vector<Symbol> symbols;
  std::vector<Port> inputs, outputs;
  std::vector<Buffer> buffers;
  std::vector<ir::Tensor> constants;    ///< prepacked, equal ones once
  std::vector<kernel::Kernel> kernels;  ///< equal ones may occur; the backend deduplicates code
  std::vector<Step> steps;
  std::vector<Requirement> requirements;
  std::vector<Repeated> loops;

  /// For static shapes; 0 otherwise.
  int64_t arena_bytes = 0;
  /// The largest sum of live bytes over all steps: no plan can be smaller. 0 if shapes are symbolic.
  int64_t lower_bound_bytes = 0;
};

/// Builds kernels by the schedules recorded in the graph (attribute "schedule"; chosen by pass choose_schedules),
/// orders steps, assigns memory. The graph must have been through the passes. Throws UnsupportedError listing every
/// node that has neither kernel nor host operator.
Plan make_plan(const ir::Graph& graph, const TargetInfo& target);

/// The memory plan as a table, with its lower bound.
std::string print_memory(const Plan& plan);
/// The steps as a table: name, schedule, phases, buffers.
std::string print(const Plan& plan);

}  // namespace cuvil::plan
