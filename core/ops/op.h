// Operators: each is declared once, as an OpDef in its own file of this folder, and listed in op_list.inc. Parsers,
// printers, Python builders, documents and conformance tests derive from the declaration. No code elsewhere switches on
// operator names: it asks traits.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ir/graph.h"
#include "core/kernel/ir.h"

namespace cuvil::ops {

/// What passes and the plan may know of an operator.
enum Trait : uint32_t {
  kElementwise = 1 << 0,  ///< out[i] = expr(in[i]...) with numpy broadcasting; has `expr`; one output
  kReduction = 1 << 1,    ///< reduces axes of input 0
  kContraction = 1 << 2,  ///< sums of products: convolution, matmul; schedules exist, epilogues fuse into it
  kView = 1 << 3,         ///< output 0 is input 0's memory under another shape, both in plain layout (Reshape, ...)
  kCommutative = 1 << 4,  ///< of its two inputs
  kConstant = 1 << 5,     ///< Constant
  kHost = 1 << 6,         ///< no loop nest: runs as a host function of the runtime
  kBlockable = 1 << 7,    ///< works on images [N, C, H, W] (axis 1 = channels) in NCHWc: inputs and outputs of rank 4
                          ///< may be blocked on axis 1 (weights and the like are exempt). All elementwise ops are.
  kImage = 1 << 8,        ///< blockable, and gains from NCHWc: the layout pass starts here
  kConcat = 1 << 9,       ///< output is the inputs side by side along attribute axis: may be planned without copies
  kReorder = 1 << 10,     ///< changes layout only
  kRowwise = 1 << 11,     ///< works row by row along the last axis or attribute axis (softmax, layer norm)
  kEpilogueOk = 1 << 12,  ///< not elementwise, but elementwise users may be fused onto its output store
  kDataDependent = 1 << 13,  ///< output shape depends on input values
  kPure = 1 << 14,     ///< same inputs give same outputs, no effects: may be folded, merged, removed. (All so far.)
  kGroup = 1 << 15,    ///< a fusion group: one region, lowered as one kernel
  kControl = 1 << 16,  ///< has closed regions that run as parts of the program: none, once, or many times. Whatever
                       ///< they read is an input of the node.
};

struct ValueSpec {
  std::string_view name;
  std::string_view doc;
  bool optional = false;
  bool variadic = false;  ///< last only: one or more
};

enum class AttrKind : uint8_t { integer, real, string, integers, reals, strings, dtype, shape, tensor, layout };
struct AttrSpec {
  std::string_view name;
  AttrKind kind;
  std::string_view doc;
  bool required = true;
  /// Value when absent, if not required; ops::normalise() writes it out. Nullopt: it stays absent, which means
  /// something of its own (all axes, no bound, ...), said in `doc`.
  std::optional<ir::Attribute> fallback = std::nullopt;
};

/// What a type rule sees: a node whose schema holds.
struct InferContext {
  const ir::Node& node;
  std::span<ir::Value* const> inputs() const { return node.inputs(); }
  const ir::Type& in(size_t i) const { return node.input(i)->type; }
  bool has_in(size_t i) const { return node.input(i) != nullptr; }
  /// Throws ShapeError naming the node.
  [[noreturn]] void fail(const std::string& what) const;

  /// Sizes that must agree. Numbers that differ fail now. Where symbols keep it open, agreement is assumed, and noted
  /// as a requirement that the runtime checks for every new shape: ShapeError there, never a wrong answer.
  void require_equal(const Dim& a, const Dim& b, const std::string& what) const;
  std::vector<std::pair<Dim, Dim>>* requirements = nullptr;  ///< where to note them; null = nowhere
};

/// What a lowering builds with; defined in core/ops/lower.h.
class LowerContext;

/// One test case: a tiny graph of this one operator with inputs. The expected outputs come from the interpreter
/// (lowering without any pass) and, where a sample states them, from numbers written by hand.
struct Sample {
  std::string name;
  std::vector<std::optional<ir::Type>> inputs;  ///< types of the operator's inputs; nullopt: an optional one left out
  ir::Attributes attributes = {};
  /// Inputs' values, in logical row-major order; a missing or empty list: random (seeded, floats in `range`, integers
  /// in [-4, 4], unsigned ones in [0, 8]).
  std::vector<std::vector<double>> values = {};
  /// Expected output 0 in logical row-major order, if written by hand.
  std::vector<double> expected = {};
  double tolerance = 1e-5;           ///< relative and absolute, for floats, of optimised against interpreter
  std::vector<double> range{-2, 2};  ///< of random floats
};

struct OpDef {
  std::string_view name;
  std::string_view doc;  ///< what it computes, as a formula; shapes; the standard it follows
  std::vector<ValueSpec> inputs;
  std::vector<ValueSpec> outputs;
  std::vector<AttrSpec> attributes;
  uint32_t traits = 0;
  std::vector<DType> dtypes;  ///< of input 0; empty = all of f32, i64, i32, u8, bool

  /// Types of all outputs. Throws ShapeError for inputs that do not fit.
  std::function<std::vector<ir::Type>(const InferContext&)> infer;
  /// Elementwise: the value from operands of equal lanes (already broadcast).
  std::function<kernel::Expr(const ir::Node&, std::span<const kernel::Expr>)> expr;
  /// Others: the plain loop nest. It IS the reference meaning. Any layout the traits allow.
  std::function<void(LowerContext&)> lower;
  /// Host operators: name in the runtime's list.
  std::string_view host;
  /// Optional algebraic fold beyond "all inputs constant" (which is done by running the lowering): a value equal to
  /// output 0 (e.g. Reshape to the same shape gives its input), or null.
  std::function<ir::Value*(ir::Graph&, ir::Node&)> fold;
  /// FLOP of one node (a multiply-add counts 2), for reports; default: elements of output 0.
  std::function<Dim(const ir::Node&)> flops;
  std::function<std::vector<Sample>()> samples;

  bool is(uint32_t trait) const { return (traits & trait) != 0; }
};

/// The definition of an operator; null if unknown.
const OpDef* find(std::string_view name);
/// The definition; internal error if unknown.
const OpDef& get(std::string_view name);
inline const OpDef& def(const ir::Node& node) { return get(node.op); }
/// FLOP of a node by its definition; default: elements of output 0.
Dim flops_of(const ir::Node& node);
/// All, sorted by name.
std::span<const OpDef* const> all();

/// Checks a node against its schema (input counts, attribute names and kinds, dtypes) and writes absent attributes'
/// defaults; integers stand for reals and for shapes. Every node may also carry the string attribute "schedule".
/// Throws ModelError / UnsupportedError naming the node.
void normalise(ir::Node& node);
/// Runs the type rule. Layouts of outputs: what the rule says; where it says plain and the op is elementwise, the
/// layout of the first input of the output's shape; where it is blockable, the blocks of channels of input 0.
std::vector<ir::Type> infer(const ir::Node& node);
/// Sizes whose equality the node's type rule takes for granted.
std::vector<std::pair<Dim, Dim>> requirements(const ir::Node& node);
/// ir::verify plus: every node's schema and type rule hold (dtypes and shapes; layouts are the passes' choice, but only
/// elementwise, blockable, constant, reordering and fused nodes may have results that are not plain).
void check(const ir::Graph& graph);
/// docs/operators.md as text.
std::string markdown();

}  // namespace cuvil::ops
