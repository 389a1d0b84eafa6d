// What operators' files share: the functions they define, families of declarations, type rules, samples.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/ops/op.h"

namespace cuvil::ops {

#define CUVIL_OP(name) OpDef define_##name();
#include "core/ops/op_list.inc"
#undef CUVIL_OP

// ---- element types
std::vector<DType> all_dtypes();    ///< everything Kernel IR stores
std::vector<DType> float_dtypes();  ///< f32, f16, bf16
std::vector<DType> int_dtypes();
std::vector<DType> number_dtypes();        ///< floats with f64, and integers; not bool
std::vector<DType> real_dtypes();          ///< floats with f64
std::vector<DType> float_or_int_dtypes();  ///< float_dtypes() and int_dtypes()

// ---- type rules
/// numpy's broadcasting of two shapes. A symbol beside another size that is not 1 is required to equal it.
Shape broadcast(const InferContext& c, const Shape& a, const Shape& b);
/// Checks that input `i` has the dtype of input 0.
void same_dtype(const InferContext& c, size_t i);
void need_dtype(const InferContext& c, size_t i, DType dtype);
void need_rank(const InferContext& c, size_t i, int rank);
/// -rank <= axis < rank, made nonnegative.
int axis_of(const InferContext& c, int64_t axis, int rank, std::string_view name = "axis");
/// Several axes: nonnegative, sorted, each once.
std::vector<int> axes_of(const InferContext& c, const std::vector<int64_t>& axes, int rank);
/// The same outside of a type rule, where they are known to be right.
int axis_of(const ir::Node& node, int rank, std::string_view name = "axis");

// ---- families
/// One input, one output of its type. `expr` is the caller's.
OpDef unary(std::string_view name, std::string_view doc, std::vector<DType> dtypes);
/// Two inputs of one dtype, broadcast.
OpDef binary(std::string_view name, std::string_view doc, std::vector<DType> dtypes);
/// As binary, with a bool result.
OpDef comparison(std::string_view name, std::string_view doc, std::vector<DType> dtypes);

// ---- results whose size depends on data
/// Attributes "sets" (names of the symbols that the node sets) and "upper" (their bounds).
std::vector<AttrSpec> set_symbols();
/// The symbol of a node that sets one.
Dim symbol_of(const InferContext& c);

// ---- attributes
AttrSpec required(std::string_view name, AttrKind kind, std::string_view doc);
AttrSpec optional(std::string_view name, AttrKind kind, std::string_view doc, ir::Attribute fallback);
/// No default: absent has a meaning of its own.
AttrSpec absent_ok(std::string_view name, AttrKind kind, std::string_view doc);
using Ints = std::vector<int64_t>;

// ---- samples
ir::Type f32(Shape shape);
ir::Type i64(Shape shape);
ir::Type of(DType dtype, Shape shape);
/// Values of input 0 and what the operator makes of them, all f32, and the shapes every unary operator must take:
/// scalar, empty, remainders.
std::vector<Sample> unary_samples(std::vector<double> values, std::vector<double> expected, double tolerance = 1e-5,
                                  ir::Attributes attributes = {}, std::vector<double> range = {-2, 2});
std::vector<Sample> unary_samples(DType dtype, std::vector<double> values, std::vector<double> expected);
std::vector<Sample> binary_samples(DType dtype, std::vector<double> a, std::vector<double> b,
                                   std::vector<double> expected);

/// Adds samples under names with a prefix.
void append(std::vector<Sample>& all, std::vector<Sample> more, const std::string& prefix);

}  // namespace cuvil::ops
