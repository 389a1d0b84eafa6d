// From logical tensor coordinates to Kernel IR loads and stores. The one place that knows how layouts, broadcasting,
// strides and symbolic dimensions become index arithmetic: lowerings and schedules speak in coordinates.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/ir/type.h"
#include "core/kernel/ir.h"

namespace cuvil::ops {

/// Symbols of the model become dimensions of the kernel, of the same name, in order of first use: the executor binds
/// them by name.
class DimBinder {
 public:
  explicit DimBinder(kernel::Builder& builder) : builder_(builder) {}
  kernel::Expr operator()(const Dim& dim);

 private:
  kernel::Builder& builder_;
  std::map<std::string, kernel::Expr> dims_;
};
/// The way back, for task counts and scratch: an index expression over a kernel's dims as a Dim over symbols. Internal
/// error for an expression that is not one (loads, task or loop variables are read as symbols of their name).
Dim to_dim(const kernel::Expr& expr);

/// One element of a tensor, or `lanes` elements of it: neighbours along `axis` beginning at `index[axis]`, and/or
/// whatever the entries of `index` say that are vectors themselves (i64 of `lanes`: one position per lane).
struct Coords {
  std::vector<kernel::Expr> index;  ///< logical, one per axis
  int axis = -1;                    ///< of the vector; -1: none
  int lanes = 1;
  kernel::Expr mask;   ///< bool of `lanes`: lanes that are off read as 0 and are not stored. Null: all are on
  kernel::Expr where;  ///< scalar bool for all lanes at once, beside `mask`. Null: true

  /// The position along axis `a` as a value: a scalar, or a vector of `lanes` for the vector's axis.
  kernel::Expr at(int a) const;
  /// Both predicates as one: a bool of `lanes` (scalar for lanes 1), or null if nothing is off.
  kernel::Expr predicate() const;
  /// The same position with another index on axis `a` (which stops being the vector's axis).
  Coords with(int a, kernel::Expr value) const;
  /// index[a] * factor + offset: stays a run of neighbours where factor is 1, else becomes a vector of positions. Along
  /// a blocked axis only by multiples of the lanes; shifted() takes any offset.
  Coords moved(int a, const kernel::Expr& factor, const kernel::Expr& offset) const;
  /// index[a] + offset, for a tensor that may be blocked along `a`: a vector of positions unless the offset is known to
  /// keep runs aligned.
  Coords shifted(int a, const kernel::Expr& offset, bool blocked) const;
  /// Turned off additionally where `condition` (a scalar or a vector bool) is false.
  Coords only(const kernel::Expr& condition) const;
};

/// A tensor in memory.
class TensorAccess {
 public:
  TensorAccess() = default;
  TensorAccess(kernel::Buffer buffer, ir::Type type) : buffer_(std::move(buffer)), type_(std::move(type)) {}
  /// Declares a kernel parameter with the physical shape of `type`.
  static TensorAccess param(kernel::Builder& b, DimBinder& dims, std::string name, const ir::Type& type,
                            kernel::Access access);

  const ir::Type& type() const { return type_; }
  const kernel::Buffer& buffer() const { return buffer_; }

  /// A vector along an axis that lies contiguously (the last axis of a plain tensor; a blocked axis whose block is a
  /// multiple of `lanes`, at an index that is a multiple of `lanes`) is one vector access, otherwise a gather. Where no
  /// coordinate of the tensor differs between lanes: the scalar, broadcast. Always gives `at.lanes` lanes.
  kernel::Expr load(const Coords& at) const;
  /// `value` has `at.lanes` lanes, or is a scalar that goes to all of them.
  void store(kernel::Builder& b, const Coords& at, kernel::Expr value) const;
  /// Physical indices of a logical position, one per buffer dimension (vectors where an index is one).
  std::vector<kernel::Expr> physical(const std::vector<kernel::Expr>& index) const;
  /// True if `lanes` neighbours along `axis` (aligned to `lanes` if the axis is blocked) are neighbours in memory.
  bool contiguous(int axis, int lanes) const;

 private:
  kernel::Buffer buffer_;
  ir::Type type_;
};

/// Coordinates of an operand that is broadcast (numpy rules) against a result: axes aligned at the right, extents of
/// 1 read at 0. The vector axis moves along, or vanishes (scalar load, to be broadcast).
Coords broadcast_coords(const Coords& at, const Shape& result, const Shape& operand);
/// Coordinates without the given axes (sorted): of a reduction's result without its kept axes.
Coords drop_axes(const Coords& at, const std::vector<int>& axes);

/// A value that can be read at coordinates: a tensor, or an elementwise expression over tensors (a fused producer).
using Reader = std::function<kernel::Expr(const Coords&)>;
/// Takes a computed value at coordinates: stores it, after a fused epilogue if there is one.
using Writer = std::function<void(const Coords&, kernel::Expr)>;

}  // namespace cuvil::ops
