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
/// The way back, for task counts and scratch: an index expression over a kernel's dims as a Dim over symbols.
Dim to_dim(const kernel::Expr& expr);

/// One element of a tensor, or `lanes` neighbours along `axis` beginning at `index`; `mask` (bool of `lanes`) turns
/// lanes off (they read as 0 and are not stored).
struct Coords {
  std::vector<kernel::Expr> index;  ///< logical, one per axis
  int axis = -1;                    ///< of the vector; -1: a scalar
  int lanes = 1;
  kernel::Expr mask;
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
  /// multiple of `lanes`, at an index that is a multiple of `lanes`) is one vector access, otherwise a gather. Along an
  /// axis of extent 1 while lanes > 1: the scalar, broadcast.
  kernel::Expr load(const Coords& at) const;
  void store(kernel::Builder& b, const Coords& at, kernel::Expr value) const;
  /// Physical indices of a scalar position.
  std::vector<kernel::Expr> physical(const std::vector<kernel::Expr>& index) const;

 private:
  kernel::Buffer buffer_;
  ir::Type type_;
};

/// Coordinates of an operand that is broadcast (numpy rules) against a result: axes aligned at the right, extents of
/// 1 read at 0. The vector axis moves along, or vanishes (scalar load, to be broadcast).
Coords broadcast_coords(const Coords& at, const Shape& result, const Shape& operand);

/// A value that can be read at coordinates: a tensor, or an elementwise expression over tensors (a fused producer).
using Reader = std::function<kernel::Expr(const Coords&)>;
/// Takes a computed value at coordinates: stores it, after a fused epilogue if there is one.
using Writer = std::function<void(const Coords&, kernel::Expr)>;

}  // namespace cuvil::ops
