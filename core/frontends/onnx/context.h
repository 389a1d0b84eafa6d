// What the mapping of one ONNX operator sees and does. Mappings are plain functions in map_*.cpp, in one table each.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/frontends/onnx/fold.h"
#include "core/frontends/onnx/proto.h"
#include "core/frontends/onnx/tensor.h"
#include "core/ops/builder.h"

namespace cuvil::frontends::onnx {

/// A small integer tensor (rank 0 or 1) whose elements are known as expressions over symbols: what Shape yields, and
/// what arithmetic on it yields. Shape computations of a model thus vanish at import.
struct KnownInts {
  std::vector<Dim> values;
  bool scalar = false;
  DType dtype = DType::i64;
};

/// A tensor by its ONNX name: a value of the graph, known integers, or both. A value is made from known integers when
/// an operator wants the tensor itself.
struct Entry {
  ir::Value* value = nullptr;
  std::optional<KnownInts> known;
};

using Scope = std::map<std::string, Entry, std::less<>>;

class OpContext {
 public:
  OpContext(const ProtoNode& proto, int64_t opset, Scope& scope, ops::Builder& builder, Folder& folder,
            const ModelSource& source, Location where)
      : proto(proto),
        opset(opset),
        b(builder),
        where(std::move(where)),
        scope_(scope),
        folder_(folder),
        source_(source) {}

  const ProtoNode& proto;
  const int64_t opset;
  ops::Builder& b;
  const Location where;

  // ---- inputs
  size_t num_inputs() const { return proto.inputs.size(); }
  bool has(size_t i) const { return i < proto.inputs.size() && !proto.inputs[i].empty(); }
  /// Throws ModelError if absent.
  ir::Value* in(size_t i);
  ir::Value* in_or_null(size_t i) { return has(i) ? in(i) : nullptr; }
  const ir::Type& type(size_t i) { return in(i)->type; }
  int rank(size_t i) { return type(i).rank(); }
  /// Known elements of an integer input (rank 0 or 1), or nullopt: from constants, shapes, or computed from these.
  std::optional<KnownInts> known(size_t i) const;
  /// True if input i is known from shapes: sizes do not wrap, so that arithmetic on Dims may stand for them.
  bool from_shapes(size_t i) const;
  // The next four throw NeedsValues where the values of graph inputs decide, and else UnsupportedError naming `what`.
  /// The same as numbers.
  std::vector<int64_t> ints(size_t i, std::string_view what) const;
  /// As Dims.
  std::vector<Dim> dims(size_t i, std::string_view what) const;
  /// A float or int scalar.
  double number(size_t i, std::string_view what) const;
  /// A tensor whose elements are known.
  const ir::Tensor& tensor(size_t i, std::string_view what) const;
  /// A constant input's tensor, or null; nothing is computed for it.
  const ir::Tensor* constant(size_t i) const;

  // ---- attributes
  const ProtoAttribute* attribute(std::string_view name) const;
  /// The same; a ModelError if it is of another type.
  const ProtoAttribute* attribute(std::string_view name, int32_t type) const;
  int64_t attr_int(std::string_view name, int64_t fallback) const;
  double attr_float(std::string_view name, double fallback) const;
  std::string attr_string(std::string_view name, std::string_view fallback) const;
  std::vector<int64_t> attr_ints(std::string_view name, std::vector<int64_t> fallback) const;
  std::vector<double> attr_floats(std::string_view name, std::vector<double> fallback) const;
  std::optional<ir::Tensor> attr_tensor(std::string_view name) const;
  /// An axis in [-rank, rank) as one in [0, rank); ModelError otherwise.
  int64_t axis(int64_t value, int rank) const;

  // ---- outputs
  size_t num_outputs() const { return proto.outputs.size(); }
  bool wants(size_t i) const { return i < proto.outputs.size() && !proto.outputs[i].empty(); }
  void out(size_t i, ir::Value* value);
  void out_known(size_t i, KnownInts known);
  /// The name of output i: mappings give it to the value they make.
  std::string_view out_name(size_t i = 0) const { return i < proto.outputs.size() ? proto.outputs[i] : ""; }

  [[noreturn]] void unsupported(const std::string& what) const { throw_unsupported(what, where); }
  [[noreturn]] void malformed(const std::string& what) const { throw_model_error(what, where); }

  /// Attributes "sets" and "upper" of a node that sets one symbol of its own.
  ir::Attributes set_symbol(std::string_view stem, Dim upper);

  ir::Value* ints_constant(const std::vector<int64_t>& values) { return b.constant(ir::Tensor::from_ints(values)); }

 private:
  const Entry* entry(size_t i) const;
  [[noreturn]] void needs(size_t i, std::string_view what) const;

  Scope& scope_;
  Folder& folder_;
  const ModelSource& source_;
};

using MapFunction = void (*)(OpContext&);
struct Mapping {
  std::string_view op;
  MapFunction map;
};

/// The tables of the map_*.cpp files.
std::span<const Mapping> elementwise_mappings();
std::span<const Mapping> shape_mappings();
std::span<const Mapping> movement_mappings();
std::span<const Mapping> neural_mappings();
std::span<const Mapping> reduction_mappings();
std::span<const Mapping> recurrent_mappings();
std::span<const Mapping> attention_mappings();
std::span<const Mapping> einsum_mappings();
std::span<const Mapping> image_mappings();
std::span<const Mapping> loss_mappings();
std::span<const Mapping> normalization_mappings();
std::span<const Mapping> signal_mappings();
std::span<const Mapping> training_mappings();
std::span<const Mapping> data_dependent_mappings();
std::span<const Mapping> quantize_mappings();
/// Looks an operator up in all tables: "Conv", or "DOMAIN.NAME" of another domain; null if there is none.
MapFunction find_mapping(std::string_view op);

}  // namespace cuvil::frontends::onnx
