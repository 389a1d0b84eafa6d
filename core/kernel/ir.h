// Kernel IR: the loop nest of ONE fused kernel. The common language of every schedule, backend and the interpreter.
//
// A kernel is a list of phases; a phase is a number of independent tasks, each running the phase's body. Between phases
// there is a barrier. The body is structured: blocks, loops, ifs, stores. Values are expressions: immutable, pure
// trees. Scalars and short vectors are the value types; vectors are explicit, as in "f32x16".
//
// The meaning of everything here is what the interpreter (interpret.h) does; the rules that a well-formed kernel obeys
// are in the verifier (verify.h); the text form is described in docs/kernel_ir.md and read by parse.h.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"

namespace cuvil::kernel {

/// A scalar (lanes 1) or a vector of 2..64 lanes.
struct Type {
  DType dtype = DType::f32;
  uint16_t lanes = 1;
  bool operator==(const Type&) const = default;
  Type with_lanes(int n) const { return {dtype, static_cast<uint16_t>(n)}; }
  Type element() const { return {dtype, 1}; }
  bool is_vector() const { return lanes > 1; }
  std::string str() const;  ///< "f32", "f32x16"
};
inline constexpr Type kIndex{DType::i64, 1};
inline constexpr Type kBool{DType::boolean, 1};

/// X(enumerator, text spelling, number of expression operands or -1 if it varies)
///
/// Integer arithmetic wraps (two's complement). div is true division for floats and truncates toward zero for integers;
/// floordiv/floormod round toward minus infinity (floats too); an integer divisor of zero gives 0. min/max return NaN
/// if either operand is NaN; comparisons are IEEE (ne is true for NaN). fma rounds once. round is to nearest, ties to
/// even. Casts float -> int truncate and saturate, NaN gives 0; int -> narrower int wraps; anything -> bool is "!= 0".
/// shl/shr by >= the width (a negative count is a large one) gives 0 (arithmetic shr: the sign). Float floordiv is
/// floor(a / b) of the rounded quotient, floormod fma(-floordiv, b, a). Which zero min/max of both zeros gives is open.
/// Reductions combine, while the number of lanes is even, the upper half onto the lower, then go from left to right.
// clang-format off
#define CUVIL_KERNEL_OPS(X)                                                                                           \
  /* leaves */                                                                                                        \
  X(const_int, "", 0) X(const_float, "", 0) X(var, "", 0)                                                             \
  /* memory: operands are one index per buffer dimension, then the mask if has_mask (a bool of the value's lanes; a   \
     masked-off lane is not touched and reads as 0). Scalar indices with a vector type: contiguous along the last     \
     dimension. A vector index: a gather, lane by lane. */                                                            \
  X(load, "load", -1)                                                                                                 \
  /* vectors: ramp(base, stride) is base + i * stride in lane i, index scalars; broadcast: a scalar in every lane;    \
     lane number imm of a vector; shuffle: 1 or 2 equal vectors, `lanes` picks from their concatenation */            \
  X(ramp, "ramp", 2) X(broadcast, "broadcast", 1) X(lane, "lane", 1)                                                  \
  X(shuffle, "shuffle", -1) X(reduce_add, "reduce_add", 1)                                                            \
  X(reduce_max, "reduce_max", 1) X(reduce_min, "reduce_min", 1)                                                       \
  /* arithmetic; fma(a, b, c) = a * b + c */                                                                          \
  X(add, "+", 2) X(sub, "-", 2) X(mul, "*", 2) X(div, "/", 2)                                                         \
  X(floordiv, "floordiv", 2) X(floormod, "%", 2) X(min, "min", 2) X(max, "max", 2)                                    \
  X(fma, "fma", 3) X(neg, "neg", 1) X(abs, "abs", 1) X(sqrt, "sqrt", 1)                                               \
  X(floor, "floor", 1) X(ceil, "ceil", 1) X(trunc, "trunc", 1)                                                        \
  X(round, "round", 1)                                                                                                \
  /* transcendentals, of one float operand (pow: two); expand_math.h turns them into arithmetic with stated errors */ \
  X(exp, "exp", 1) X(log, "log", 1) X(tanh, "tanh", 1) X(erf, "erf", 1)                                               \
  X(sigmoid, "sigmoid", 1) X(sin, "sin", 1) X(cos, "cos", 1) X(tan, "tan", 1)                                         \
  X(asin, "asin", 1) X(acos, "acos", 1) X(atan, "atan", 1) X(sinh, "sinh", 1)                                         \
  X(cosh, "cosh", 1) X(asinh, "asinh", 1) X(acosh, "acosh", 1)                                                        \
  X(atanh, "atanh", 1) X(pow, "pow", 2)                                                                               \
  /* comparison, logic, bits; select(cond, a, b) is lane-wise, cond may be a scalar bool */                           \
  X(eq, "==", 2) X(ne, "!=", 2) X(lt, "<", 2) X(le, "<=", 2) X(gt, ">", 2)                                            \
  X(ge, ">=", 2) X(bit_and, "&", 2) X(bit_or, "|", 2) X(bit_xor, "^", 2)                                              \
  X(bit_not, "~", 1) X(shl, "<<", 2) X(shr, ">>", 2) X(select, "select", 3)                                           \
  /* conversion */                                                                                                    \
  X(cast, "cast", 1) X(bitcast, "bitcast", 1)                                                                         \
  /* dot(acc, a, b) adds groups of products of narrow lanes to wide lanes; a and b have k times acc's lanes:          \
     i32 += 4 x (u8 or i8) * i8, f32 += 2 x bf16 * bf16 */                                                            \
  X(dot, "dot", 3)
// clang-format on
enum class Op : uint8_t {
#define X(name, text, arity) name,
  CUVIL_KERNEL_OPS(X)
#undef X
};
struct OpInfo {
  std::string_view name;  ///< enumerator
  std::string_view text;  ///< spelling in the text form: an infix symbol or a function name
  int arity;
};
const OpInfo& info(Op op);

/// A named value: a loop variable, a let, a symbolic dimension. Identity is the pointer; names are for people, and the
/// printer makes them unique.
struct VarInfo {
  std::string name;
  Type type = kIndex;
};
using Var = std::shared_ptr<const VarInfo>;
Var make_var(std::string name, Type type = kIndex);

struct ExprNode;
struct BufferInfo;
using Buffer = std::shared_ptr<const BufferInfo>;

/// A pure value. A handle to a shared immutable node; null only when default-constructed.
class Expr {
 public:
  Expr() = default;
  Expr(int64_t index);                                    // NOLINT: an i64 constant
  Expr(int index) : Expr(static_cast<int64_t>(index)) {}  // NOLINT
  Expr(const Var& var);                                   // NOLINT
  Expr(bool) = delete;  ///< !e is a test of the handle; logical_not(e) is the expression
  explicit Expr(std::shared_ptr<const ExprNode> node) : node_(std::move(node)) {}

  explicit operator bool() const { return node_ != nullptr; }
  const ExprNode* operator->() const { return node_.get(); }
  const ExprNode& operator*() const { return *node_; }
  const ExprNode* get() const { return node_.get(); }
  Type type() const;
  bool is_const_int(int64_t value) const;

 private:
  std::shared_ptr<const ExprNode> node_;
};

struct ExprNode {
  Op op;
  Type type;
  std::vector<Expr> args;
  int64_t int_value = 0;   ///< const_int (any int or bool type), lane
  double float_value = 0;  ///< const_float
  Var variable;            ///< var
  Buffer buffer;           ///< load
  bool has_mask = false;   ///< load: the last operand is the mask
  std::vector<int> lanes;  ///< shuffle
};

/// Memory spaces. On the CPU `shared` is `scratch` and `constant` is `global`.
enum class Space : uint8_t {
  global,    ///< a parameter
  scratch,   ///< per task, uninitialised at its start; sits in the executor's per-thread scratch
  reg,       ///< per task, meant for registers: indexed by constants once loops are unrolled
  shared,    ///< per GPU block
  constant,  ///< a read-only parameter
};
enum class Access : uint8_t {
  in,
  out,    ///< may be read after it was written
  inout,  ///< `in` and `out` share memory (in-place)
  work,   ///< workspace shared by all phases, uninitialised; arena memory
};

/// A typed array, row-major unless strides are given. Shapes and strides are in elements of `type`.
struct BufferInfo {
  std::string name;
  Type type;                  ///< element; a vector only in space `reg`
  std::vector<Expr> shape;    ///< constants, or expressions over the kernel's dims
  std::vector<Expr> strides;  ///< empty = row-major contiguous
  Space space = Space::global;
  Access access = Access::in;  ///< of parameters
};
Buffer make_buffer(std::string name, Type type, std::vector<Expr> shape, Space space, Access access = Access::in,
                   std::vector<Expr> strides = {});

enum class LoopKind : uint8_t {
  serial,
  vector,  ///< innermost; scalar body, vectorize.h makes it explicit, the remainder by masks. No loop-carried
           ///< dependence.
  unroll,  ///< constant extent
  gpu_thread_x,
  gpu_thread_y,
  gpu_thread_z,
};

enum class StmtKind : uint8_t { block, loop, let, alloc, store, branch, prefetch, barrier, fail };

struct StmtNode;
using Stmt = std::shared_ptr<const StmtNode>;
struct StmtNode {
  StmtKind kind;
  std::vector<Stmt> body;       ///< block; loop; branch: the then part
  std::vector<Stmt> otherwise;  ///< branch: the else part
  Var variable;                 ///< loop, let. A let (and an alloc) is visible to the end of the enclosing body.
  Expr begin, end;              ///< loop: variable = begin, begin + step, ... while < end
  int64_t step = 1;             ///< loop: > 0
  LoopKind loop = LoopKind::serial;
  Expr value;                 ///< let, store (its lanes as for load), branch: the condition
  Buffer buffer;              ///< alloc, store, prefetch
  std::vector<Expr> indices;  ///< store, prefetch
  Expr mask;                  ///< store; null = all lanes
  int64_t code = 0;           ///< fail: what the kernel returns (not 0); prefetch: cache level 1 or 2. Prefetching
                              ///< outside the buffer is allowed and does nothing.
};

struct Phase {
  Var task;    ///< 0 .. tasks-1; on a GPU the block number
  Expr tasks;  ///< over dims
  std::vector<Stmt> body;
};

struct Kernel {
  std::string name;            ///< [a-z0-9_]+
  std::vector<Buffer> params;  ///< in the order of cuvil_kernel_fn's buffers
  std::vector<Var> dims;       ///< in the order of cuvil_kernel_fn's dims
  std::vector<Phase> phases;   ///< compiled to symbols NAME_p0, NAME_p1, ...
};

// ---- building expressions. Operands of an operator have one type; a scalar beside a vector is broadcast, and an Expr
// made from a C++ integer takes the other operand's type. Constants fold at once (exactly as the interpreter would).
Expr const_int(Type type, int64_t value);
Expr const_float(Type type, double value);
/// A constant of any type from a double; broadcast if `type` is a vector.
Expr constant(Type type, double value);
Expr load(const Buffer& buffer, std::vector<Expr> indices, int lanes = 1, Expr mask = {});
Expr ramp(Expr base, Expr stride, int lanes);
Expr broadcast(Expr scalar, int lanes);  ///< lanes 1: the scalar itself
Expr lane(Expr vector, int index);
Expr shuffle(std::vector<Expr> vectors, std::vector<int> lanes);
/// Any operator of the table with expression operands only.
Expr make(Op op, std::vector<Expr> args);
Expr cast(Type type, Expr value);     ///< keeps value's lanes
Expr bitcast(Type type, Expr value);  ///< equal total bits
Expr dot(Expr acc, Expr a, Expr b);
Expr select(Expr cond, Expr a, Expr b);
Expr fma(Expr a, Expr b, Expr c);
Expr min(Expr a, Expr b);
Expr max(Expr a, Expr b);
Expr floordiv(Expr a, Expr b);
Expr ceildiv(Expr a, Expr b);
Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator/(Expr a, Expr b);
Expr operator%(Expr a, Expr b);  ///< floormod
Expr operator-(Expr a);
Expr operator<(Expr a, Expr b);
Expr operator<=(Expr a, Expr b);
Expr operator>(Expr a, Expr b);
Expr operator>=(Expr a, Expr b);
Expr operator==(Expr a, Expr b);  ///< an expression, not a test of identity
Expr operator!=(Expr a, Expr b);
Expr operator&(Expr a, Expr b);
Expr operator|(Expr a, Expr b);
/// Not an operator: !e asks whether the handle is null.
Expr logical_not(Expr a);
/// The mask of lanes i with base + i < end: what a remainder needs. Lanes 1 gives a scalar bool.
Expr lane_mask(Expr base, Expr end, int lanes);

/// Structural equality (variables and buffers by identity).
bool equal(const Expr& a, const Expr& b);

/// Builds a kernel statement by statement; bodies are lambdas.
class Builder {
 public:
  explicit Builder(std::string name);

  Expr dim(std::string name);  ///< a new symbolic dimension
  Buffer param(std::string name, Type type, std::vector<Expr> shape, Access access, std::vector<Expr> strides = {});

  /// Adds a phase. Only here may bodies be built.
  void phase(Expr tasks, const std::function<void(Expr task)>& body);

  void loop(std::string name, Expr begin, Expr end, LoopKind kind, const std::function<void(Expr)>& body,
            int64_t step = 1);
  /// serial loop 0..end
  void loop(std::string name, Expr end, const std::function<void(Expr)>& body) {
    loop(std::move(name), 0, std::move(end), LoopKind::serial, body);
  }
  Buffer alloc(std::string name, Type type, std::vector<Expr> shape, Space space);
  Expr let(std::string name, Expr value);
  void store(const Buffer& buffer, std::vector<Expr> indices, Expr value, Expr mask = {});
  void branch(Expr condition, const std::function<void()>& then, const std::function<void()>& otherwise = {});
  void prefetch(const Buffer& buffer, std::vector<Expr> indices, int level);
  void barrier();
  void fail(int64_t code);

  /// The finished kernel; verified (verify.h) in debug builds.
  Kernel finish();

 private:
  Kernel kernel_;
  std::vector<std::vector<Stmt>*> open_;
  void add(StmtNode node);
};

/// Bottom-up rewriting: `f` sees every expression after its operands were rewritten and returns a replacement, or the
/// same handle. Unchanged trees are returned as they are.
Expr rewrite(const Expr& e, const std::function<Expr(const Expr&)>& f);
/// The same over all expressions below statements.
std::vector<Stmt> rewrite(const std::vector<Stmt>& body, const std::function<Expr(const Expr&)>& f);
/// Replaces variables by expressions.
Expr substitute(const Expr& e, std::span<const std::pair<Var, Expr>> values);
std::vector<Stmt> substitute(const std::vector<Stmt>& body, std::span<const std::pair<Var, Expr>> values);
/// Visits every expression (children first; a node that a statement uses more than once is visited once for it) and
/// every statement (parents first) of a body.
void visit(const std::vector<Stmt>& body, const std::function<void(const StmtNode&)>& on_stmt,
           const std::function<void(const ExprNode&)>& on_expr);

/// Bytes of scratch per thread that the kernel's phases need (space `scratch`; every buffer padded to 64 bytes): an
/// expression over dims. Offsets are assigned in order of the allocs; the CPU backend does the same.
Expr scratch_bytes(const Kernel& kernel);

}  // namespace cuvil::kernel
