// One operator, alone or with an epilogue, run by a schedule and by the operator's own loop nest, and compared.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/target_info.h"
#include "core/ir/graph.h"
#include "core/kernel/interpret.h"
#include "core/schedules/schedule.h"

namespace cuvil::schedules::test {

enum class Epilogue : uint8_t { none, relu, residual_relu, two_users };

struct Case {
  std::string op;
  std::vector<std::optional<Shape>> inputs;  ///< f32; nullopt: left out
  ir::Attributes attributes;
  Epilogue epilogue = Epilogue::none;
  std::map<std::string, int64_t> symbols;        ///< values of symbolic dimensions
  bool block_input = true, block_output = true;  ///< of rank 4: in NCHWc of the target
  std::string name() const;
};

/// The case as a graph of one node, plain or Fused.
struct Problem {
  ir::Graph graph;
  ir::Node* node = nullptr;
  ops::Group group() const { return ops::Group::of(*node); }
};
Problem plain(const Case& c);
/// The same with images blocked and constants packed as the schedule wants them.
Problem laid_out(const Case& c, const Schedule& schedule, const TargetInfo& target);

/// Values of a tensor in logical row-major order to its physical order, padding filled with NaN; and back.
std::vector<float> to_physical(const ir::Type& type, const std::vector<float>& logical,
                               const std::map<std::string, int64_t>& symbols);
std::vector<float> to_logical(const ir::Type& type, const std::vector<float>& physical,
                              const std::map<std::string, int64_t>& symbols);

/// Runs a kernel; returns its code.
using Runner =
    std::function<int32_t(const kernel::Kernel&, std::span<const kernel::Argument>, std::span<const int64_t>)>;

/// Logical values of all inputs, seeded.
std::vector<std::vector<float>> random_inputs(const Case& c);
/// Logical values of the result 0 of `problem`'s kernel on these inputs.
std::vector<float> run(const Problem& problem, const kernel::Kernel& kernel,
                       const std::vector<std::vector<float>>& inputs, const std::map<std::string, int64_t>& symbols,
                       const Runner& runner);
/// Largest |a - b| / (1 + |b|); infinite for NaN or different sizes.
double difference(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace cuvil::schedules::test
