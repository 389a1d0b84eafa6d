// Runs nodes by their plain loop nests, on bytes.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/target_info.h"
#include "core/ir/graph.h"
#include "core/kernel/interpret.h"

namespace cuvil::conformance {

using Symbols = std::map<std::string, int64_t>;
using Memory = std::map<const ir::Value*, std::vector<uint8_t>>;
/// Runs a kernel; returns its code.
using Runner =
    std::function<int32_t(const kernel::Kernel&, std::span<const kernel::Argument>, std::span<const int64_t>)>;

/// The type with numbers for symbols.
ir::Type evaluate(ir::Type type, const Symbols& symbols);
/// Bytes of a tensor of a static type from logical row-major values; padding holds garbage (NaN, -1) that must not
/// reach results. And back.
std::vector<uint8_t> encode(const std::vector<double>& values, const ir::Type& type);
std::vector<double> decode(const std::vector<uint8_t>& bytes, const ir::Type& type);

TargetInfo target_of(int vector_bytes);

/// The node's kernel (verified), and what a launch passes for its dims.
kernel::Kernel kernel_of(const ir::Node& node, const TargetInfo& target, std::string name = "k");
std::vector<int64_t> dims_of(const kernel::Kernel& kernel, const Symbols& symbols);
/// Lowers and runs one node: reads its inputs from `memory`, adds its outputs.
int32_t run_node(const ir::Node& node, Memory& memory, const Symbols& symbols, const TargetInfo& target,
                 const Runner& runner);
/// The same with a kernel made before.
int32_t run_kernel(const kernel::Kernel& kernel, const ir::Node& node, Memory& memory, const Symbols& symbols,
                   const Runner& runner);
/// Logical values of all results of a graph from those of its inputs, node by node in the interpreter.
std::vector<std::vector<double>> run_graph(const ir::Graph& graph, const std::vector<std::vector<double>>& inputs,
                                           const Symbols& symbols, int vector_bytes);

}  // namespace cuvil::conformance
