// From a node (or a fused group of nodes) to a kernel. Fusion is substitution: a lowering reads its inputs through
// Readers and writes its outputs through Writers, and does not know whether a Reader is a tensor in memory or a fused
// producer's expression, or whether a Writer applies an epilogue first.
#pragma once

#include <string>
#include <vector>

#include "core/base/target_info.h"
#include "core/ops/access.h"
#include "core/ops/op.h"

namespace cuvil::ops {

/// The parts of a group: a Fused node's region, or one node alone. In a group at most one node, the anchor, is not
/// elementwise; elementwise nodes before it are its prologue, those after it its epilogue.
/// Fused nodes: op "Fused", one region whose params are the inputs and whose results are the outputs.
struct Group {
  const ir::Node* node = nullptr;    ///< the Fused node or the single node
  const ir::Node* anchor = nullptr;  ///< null: all elementwise
  std::vector<const ir::Node*> prologue, epilogue;  ///< in order
  static Group of(const ir::Node& node);
};

class LowerContext {
 public:
  /// Declares the kernel's parameters: all inputs of the group's node (absent optionals left out), then its outputs,
  /// in this order: it is the order of the launch's arguments. Workspaces that a schedule adds come after.
  LowerContext(const Group& group, const TargetInfo& target, std::string kernel_name);

  kernel::Builder& b() { return builder_; }
  DimBinder& dims() { return dims_; }
  const TargetInfo& target() const { return target_; }
  const Group& group() const { return group_; }
  /// The anchor; for an all-elementwise group the last node.
  const ir::Node& node() const { return *node_; }

  /// Input i of node(): its type and how to read it. A prologue is inlined here.
  const ir::Type& in_type(size_t i) const;
  bool has_in(size_t i) const;
  kernel::Expr load(size_t i, const Coords& at) const;
  kernel::Expr load(size_t i, std::vector<kernel::Expr> index) const { return load(i, Coords{std::move(index)}); }
  /// Input i as memory, for schedules that address it themselves; null if a prologue is in between.
  const TensorAccess* in_memory(size_t i) const;

  /// Output i of node() as the anchor computes it (logical shape), before the epilogue.
  const ir::Type& out_type(size_t i = 0) const;
  /// Runs the epilogue on a computed value of output i at coordinates and stores the group's results. The epilogue's
  /// coordinates are those of the anchor's output (elementwise: equal shapes).
  void store(const Coords& at, kernel::Expr value, size_t i = 0);
  void store(std::vector<kernel::Expr> index, kernel::Expr value, size_t i = 0) {
    store(Coords{std::move(index)}, std::move(value), i);
  }
  /// The group's output as memory: its layout decides how a schedule walks.
  const TensorAccess& out_memory(size_t i = 0) const;
  /// Extents as expressions.
  kernel::Expr dim(const Dim& d) { return dims_(d); }
  std::vector<kernel::Expr> extents(const Shape& shape);

  kernel::Kernel finish() { return builder_.finish(); }

 private:
  kernel::Expr value_at(const ir::Value* value, const Coords& at, const Shape& result_shape) const;

  Group group_;
  const TargetInfo& target_;
  const ir::Node* node_;
  kernel::Builder builder_;
  DimBinder dims_;
  std::vector<std::pair<const ir::Value*, TensorAccess>> memory_;  ///< values inside the group that are parameters
  std::vector<TensorAccess> outputs_;
};

/// The plain loop nest: the reference. Elementwise groups: one loop nest over the output. Works for every group with an
/// `expr` or `lower`; kernels of host operators do not exist (internal error).
kernel::Kernel lower_reference(const Group& group, const TargetInfo& target, std::string kernel_name);

/// Loops over all elements of `shape` as tasks: the outer axes are split into at most `max_tasks` tasks... A helper for
/// lowerings: calls body with the index of one element; the last axis runs in a `vector` loop if `vectorise`.
void for_each_element(LowerContext& c, const Shape& shape, bool vectorise,
                      const std::function<void(std::vector<kernel::Expr>)>& body);

}  // namespace cuvil::ops
