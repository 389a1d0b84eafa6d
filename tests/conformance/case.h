// Test cases of operators, derived from the samples in their declarations: as they stand, with symbols for sizes, with
// images in blocks of channels.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/ops/builder.h"
#include "tests/conformance/run.h"

namespace cuvil::conformance {

struct Case {
  std::string name;  ///< "Conv2D/padded/symbols"
  const ops::OpDef* op = nullptr;
  const ops::Sample* sample = nullptr;
  std::vector<std::optional<ir::Type>> inputs;
  ir::Attributes attributes;
  ir::Layout output_layout;  ///< asked of outputs of rank 4, if not plain
  Symbols symbols;
};

/// All operators that have a kernel.
std::vector<const ops::OpDef*> operators_with_kernels();
/// The sample as it is.
Case plain_case(const ops::OpDef& op, const ops::Sample& sample);
/// Variants that the operator's traits and type rule allow.
std::vector<Case> variants(const Case& plain);

/// A graph of the one operator; types inferred, checked.
struct BuiltCase {
  ir::Graph graph;
  const ir::Node* node = nullptr;
};
BuiltCase build(const Case& c);

/// Logical row-major values of all inputs: the sample's, or random ones that depend on the sample's name only.
std::vector<std::vector<double>> input_values(const Case& c);

/// Result of a run: the kernel's return code, and every output's logical row-major values.
struct Outcome {
  int32_t code = 0;
  std::vector<std::vector<double>> outputs;
};
/// The case's inputs as bytes; and what a run left there.
Memory input_memory(const Case& c, const BuiltCase& built);
Outcome outcome_of(const Case& c, const BuiltCase& built, const Memory& memory, int32_t code);
/// Lowers the node for vectors of `vector_bytes` and interprets the kernel, or what the CPU's code generator makes of
/// it.
Outcome interpret(const Case& c, int vector_bytes, bool for_cpu = false);

/// Empty, or how they differ: integers exactly, floats within the tolerance (relative and absolute), NaN equal to NaN.
std::string difference(const std::vector<double>& got, const std::vector<double>& want, DType dtype, double tolerance);

}  // namespace cuvil::conformance
