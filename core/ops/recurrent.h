// Recurrent networks as one kernel per operator: tasks are directions and blocks of batch rows, the loop over time runs
// inside a task, and the units of the hidden state are vectors. The products of the input with its weights, for all
// steps at once, are a MatMul before; what is left here is the product with the state. Formulas and gates as in ONNX.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/ops/define.h"
#include "core/ops/loops.h"

namespace cuvil::ops {

/// An activation of ONNX's recurrent operators: Relu, Tanh, Sigmoid, Affine, LeakyRelu, ThresholdedRelu, ScaledTanh,
/// HardSigmoid, Elu, Softsign, Softplus.
struct GateActivation {
  std::string name;
  double alpha = 0, beta = 0;
  bool operator==(const GateActivation&) const = default;
  /// Of the value, cut to [-clip, clip] before if clip > 0.
  kernel::Expr operator()(kernel::Expr x, double clip) const;
};

/// Which input is what, beside 0 (x, projected: [T, B, D * gates * H]) and 1 (r: [D, H, gates * H]).
struct RecurrentInputs {
  int gates;
  size_t lengths, initial_h;
};

/// What the three operators share of their schema.
OpDef recurrent(std::string_view name, std::string_view doc, int gates);
/// Type rule: sizes of x, r, lengths and initial states, which begin at input 3; `states` is their number (h; LSTM: h
/// and c), `activations` that of one direction.
std::vector<ir::Type> infer_recurrent(const InferContext& c, int gates, int states, size_t activations);
/// Activations of all directions, in order.
std::vector<GateActivation> activations_of(const ir::Node& node);

/// One task: some rows of the batch, one direction.
class RecurrentRows {
 public:
  /// State per row and unit, e.g. the cell state of an LSTM.
  using State = kernel::Buffer;
  using Sums = std::vector<std::vector<kernel::Expr>>;  ///< [row][gate]

  RecurrentRows(LowerContext& c, const RecurrentInputs& inputs, kernel::Expr direction, kernel::Expr first, int rows);

  /// A state that begins with input `input` ([D, B, H]), or with zeros where that is absent.
  State state(const std::string& name, size_t input);
  /// Room for one value per row and unit.
  State room(const std::string& name);
  /// The steps in time, one after the other; `body` computes the next h of all units.
  void for_each_step(const std::function<void()>& body);
  /// Vectors of units; inside a step.
  void for_each_unit(const std::function<void(kernel::Expr j, kernel::Expr mask)>& body);
  /// The same with the sums over k of from[row][k] * r[k][gate][j], for gates [begin, begin + count): of several
  /// vectors of units at a time, so that a row of r is read in longer pieces.
  void for_each_unit(const State& from, int begin, int count,
                     const std::function<void(kernel::Expr j, kernel::Expr mask, const Sums& sums)>& body);
  /// The projected input of a gate.
  kernel::Expr x(int row, int gate, kernel::Expr j, kernel::Expr mask);
  /// Element [direction, offset + j] of an input of shape [D, ...]: peepholes, a bias.
  kernel::Expr weight(size_t input, kernel::Expr offset, kernel::Expr j, kernel::Expr mask);
  kernel::Expr get(const State& state, int row, kernel::Expr j, kernel::Expr mask);
  /// Writes a value as it is.
  void set(const State& state, int row, kernel::Expr j, kernel::Expr mask, kernel::Expr value);
  /// Writes where the row's sequence has not ended.
  void update(const State& state, int row, kernel::Expr j, kernel::Expr mask, kernel::Expr value);
  /// The next h, which takes h's place at the end of the step.
  void set_h(int row, kernel::Expr j, kernel::Expr mask, kernel::Expr value) { set(next_, row, j, mask, value); }
  /// Output `output` ([D, B, H]) gets a state's values.
  void finish(size_t output, const State& state);

  /// Activation number `index` of this direction's `count` ones. The directions may differ.
  kernel::Expr activate(const std::vector<GateActivation>& all, size_t index, size_t count, const kernel::Expr& value,
                        double clip) const;

  const State& h() const { return h_; }
  const kernel::Expr& direction() const { return direction_; }
  const kernel::Expr& hidden() const { return hidden_; }
  int rows() const { return rows_; }

 private:
  std::vector<Sums> products(const State& from, int begin, int count, int vectors, kernel::Expr j, kernel::Expr mask);
  kernel::Expr row(int i) const { return first_ + kernel::Expr(i); }
  LowerContext& c_;
  RecurrentInputs inputs_;
  kernel::Type type_;  ///< of the arithmetic
  kernel::Expr direction_, first_, steps_, hidden_;
  int rows_, lanes_;
  State h_, next_;
  std::vector<kernel::Expr> time_, active_;  ///< of the rows, in a step; active_ is null without lengths
};

/// Builds the phase: `body` builds one task, for a whole block of rows or for a single one.
void for_each_recurrent_task(LowerContext& c, const RecurrentInputs& inputs,
                             const std::function<void(RecurrentRows&)>& body);

}  // namespace cuvil::ops
