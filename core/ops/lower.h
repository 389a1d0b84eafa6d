// From a node (or a fused group of nodes) to a kernel. Fusion is substitution: a lowering reads its inputs through
// Readers and writes its outputs through Writers, and does not know whether a Reader is a tensor in memory or a fused
// producer's expression, or whether a Writer applies an epilogue first.
#pragma once

#include <map>
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
  const ir::Node* node = nullptr;                   ///< the Fused node or the single node
  const ir::Node* anchor = nullptr;                 ///< null: all elementwise
  std::vector<const ir::Node*> prologue, epilogue;  ///< in order
  static Group of(const ir::Node& node);
};

/// An input or a result of a group's node.
struct Port {
  const ir::Value* value = nullptr;  ///< as seen inside the group
  ir::Type type;
  size_t index = 0;        ///< among the node's inputs, or its results
  kernel::Expr immediate;  ///< value of an input that is a constant of one element: it is not read from memory
};
/// The value of a constant of one element as a scalar; null for anything else.
kernel::Expr immediate_of(const ir::Value* value);
/// All inputs of the group's node (absent optionals left out), and all its outputs.
std::vector<Port> inputs_of(const Group& group);
std::vector<Port> results_of(const Group& group);

class LowerContext {
 public:
  /// Declares the kernel's parameters: all inputs of the group's node (absent optionals left out), then its outputs,
  /// in this order: it is the order of the launch's arguments. Workspaces that a schedule adds come after.
  /// `shapes`: of the parameters, where they are not the physical shapes of their types (as many elements, another
  /// view).
  LowerContext(const Group& group, const TargetInfo& target, std::string kernel_name,
               const std::vector<Shape>* shapes = nullptr);

  kernel::Builder& b() { return builder_; }
  DimBinder& dims() { return dims_; }
  const TargetInfo& target() const { return target_; }
  const Group& group() const { return group_; }
  /// The anchor; for an all-elementwise group the last node.
  const ir::Node& node() const { return *node_; }

  /// Input i of node(): its type and how to read it. A prologue is inlined here.
  const ir::Type& in_type(size_t i) const;
  bool has_in(size_t i) const;
  kernel::Expr load(size_t i, const Coords& at);
  kernel::Expr load(size_t i, std::vector<kernel::Expr> index) { return load(i, Coords{std::move(index)}); }
  /// Input i as memory, for schedules that address it themselves; null if it is absent or a prologue is in between.
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
  /// The parameter of an input (one of inputs_of()), and of result i.
  const TensorAccess& memory(const Port& input) const;
  const TensorAccess& result_memory(size_t i) const { return outputs_[i]; }
  /// How many f32 (or wider) lanes a vector loop over this group's tensors should have: vector_bytes over the widest
  /// element, at least 4 bytes.
  int lanes() const;
  /// Extents as expressions.
  kernel::Expr dim(const Dim& d) { return dims_(d); }
  std::vector<kernel::Expr> extents(const Shape& shape);

  kernel::Kernel finish() { return builder_.finish(); }

 private:
  using Known = std::map<const ir::Value*, kernel::Expr>;
  /// A value of the group at coordinates of `shape` against which it is broadcast. `known` remembers values of exactly
  /// these coordinates.
  kernel::Expr value_at(const ir::Value* value, const Coords& at, const Shape& shape, Known& known);
  /// The first input that is this value; null if it is computed inside the group.
  const Port* port_of(const ir::Value* value) const;
  /// Which nodes of the epilogue compute with output `computed` of the anchor.
  bool reaches(const ir::Value* computed, const ir::Value* result) const;

  Group group_;
  const TargetInfo& target_;
  const ir::Node* node_;
  kernel::Builder builder_;
  DimBinder dims_;
  std::vector<Port> inputs_, results_;
  std::vector<TensorAccess> memory_;  ///< of inputs_
  std::vector<TensorAccess> outputs_;
};

/// The value of an elementwise node from its operands, all of `lanes` lanes. f16 and bf16 compute in f32 and round to
/// the result's type.
kernel::Expr elementwise_value(const ir::Node& node, std::vector<kernel::Expr> operands);

/// The plain loop nest: the reference. Elementwise groups: one loop nest over the output. Works for every group with an
/// `expr` or `lower`; kernels of host operators do not exist (internal error).
kernel::Kernel lower_reference(const Group& group, const TargetInfo& target, std::string kernel_name);

}  // namespace cuvil::ops
