#include "core/backends/gpu/opencl_c.h"

#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <vector>

#include "core/base/error.h"

namespace cuvil::backends {
namespace {

using namespace kernel;  // NOLINT: the whole file is about it

/// OpenCL C's name of an element type. Bools live in memory as uchar and in values as int (0 or 1).
std::string scalar_name(DType t) {
  switch (t) {
    case DType::f32:
      return "float";
    case DType::f64:
      return "double";
    case DType::i64:
      return "long";
    case DType::u64:
      return "ulong";
    case DType::i32:
      return "int";
    case DType::u32:
      return "uint";
    case DType::i16:
      return "short";
    case DType::u16:
      return "ushort";
    case DType::i8:
      return "char";
    case DType::u8:
    case DType::boolean:
      return "uchar";
    case DType::f16:
    case DType::bf16:
      return "ushort";
  }
  return "?";
}

std::string value_name(Type t) {
  std::string s = t.dtype == DType::boolean ? "int" : scalar_name(t.dtype);
  return t.is_vector() ? s + std::to_string(t.lanes) : s;
}

std::string literal(Type t, int64_t i, double f) {
  char text[64];
  if (t.dtype == DType::f32 || t.dtype == DType::f64) {
    if (std::isnan(f)) return t.dtype == DType::f32 ? "((float)NAN)" : "((double)NAN)";
    if (std::isinf(f)) return f < 0 ? "(-INFINITY)" : "INFINITY";
    std::snprintf(text, sizeof text, t.dtype == DType::f32 ? "%af" : "%a", f);
    return f < 0 || std::signbit(f) ? "(" + std::string(text) + ")" : text;
  }
  if (t.dtype == DType::i64 && i == INT64_MIN) return "(-0x7fffffffffffffffL - 1L)";
  std::snprintf(text, sizeof text, "((%s)%lldL)", value_name(t).c_str(), static_cast<long long>(i));
  return text;
}

/// Functions whose meaning differs from OpenCL's operators; overloaded by macros over the integer types.
constexpr const char* kPrelude = R"(
#pragma OPENCL FP_CONTRACT OFF
#define CUVIL_INT(T, U, BITS) \
  T __attribute__((overloadable)) k_div(T a, T b) { return b == 0 ? (T)0 : b == (T)-1 ? (T)(0 - (U)a) : (T)(a / b); } \
  T __attribute__((overloadable)) k_floormod(T a, T b) { if (b == 0 || b == (T)-1) return 0; T r = a % b; return (r != 0 && ((r < 0) != (b < 0))) ? (T)(r + b) : r; } \
  T __attribute__((overloadable)) k_floordiv(T a, T b) { if (b == 0) return 0; if (b == (T)-1) return (T)(0 - (U)a); T q = a / b; return (a % b != 0 && ((a < 0) != (b < 0))) ? (T)(q - 1) : q; } \
  T __attribute__((overloadable)) k_shl(T a, T b) { return (U)b >= BITS ? (T)0 : (T)((U)a << (U)b); } \
  T __attribute__((overloadable)) k_shr(T a, T b) { return (U)b >= BITS ? (a < 0 ? (T)-1 : (T)0) : (T)(a >> b); }
#define CUVIL_UINT(T, BITS) \
  T __attribute__((overloadable)) k_div(T a, T b) { return b == 0 ? (T)0 : (T)(a / b); } \
  T __attribute__((overloadable)) k_floormod(T a, T b) { return b == 0 ? (T)0 : (T)(a % b); } \
  T __attribute__((overloadable)) k_floordiv(T a, T b) { return b == 0 ? (T)0 : (T)(a / b); } \
  T __attribute__((overloadable)) k_shl(T a, T b) { return b >= BITS ? (T)0 : (T)(a << b); } \
  T __attribute__((overloadable)) k_shr(T a, T b) { return b >= BITS ? (T)0 : (T)(a >> b); }
CUVIL_INT(long, ulong, 64) CUVIL_INT(int, uint, 32) CUVIL_INT(short, ushort, 16) CUVIL_INT(char, uchar, 8)
CUVIL_UINT(ulong, 64) CUVIL_UINT(uint, 32) CUVIL_UINT(ushort, 16) CUVIL_UINT(uchar, 8)
float __attribute__((overloadable)) k_div(float a, float b) { return a / b; }
float __attribute__((overloadable)) k_floordiv(float a, float b) { return floor(a / b); }
float __attribute__((overloadable)) k_floormod(float a, float b) { float r = fmod(a, b); return (r != 0.0f && ((r < 0.0f) != (b < 0.0f))) ? r + b : r; }
float __attribute__((overloadable)) k_min(float a, float b) { return isnan(a) ? a : isnan(b) ? b : (a < b || (a == b && signbit(a))) ? a : b; }
float __attribute__((overloadable)) k_max(float a, float b) { return isnan(a) ? a : isnan(b) ? b : (a > b || (a == b && !signbit(a))) ? a : b; }
#define CUVIL_MINMAX(T) \
  T __attribute__((overloadable)) k_min(T a, T b) { return min(a, b); } \
  T __attribute__((overloadable)) k_max(T a, T b) { return max(a, b); }
CUVIL_MINMAX(long) CUVIL_MINMAX(int) CUVIL_MINMAX(short) CUVIL_MINMAX(char)
CUVIL_MINMAX(ulong) CUVIL_MINMAX(uint) CUVIL_MINMAX(ushort) CUVIL_MINMAX(uchar)
float __attribute__((overloadable)) k_sigmoid(float a) { return 1.0f / (1.0f + exp(-a)); }
)";

class Printer {
 public:
  explicit Printer(const Kernel& k) : kernel_(k) {}

  std::string run() {
    out_ = "// " + kernel_.name + "\n" + kPrelude;
    for (size_t i = 0; i < kernel_.phases.size(); ++i) phase(i);
    return std::move(out_);
  }

 private:
  void line(const std::string& text) { out_ += std::string(static_cast<size_t>(depth_) * 2, ' ') + text + "\n"; }

  std::string fresh(const std::string& stem) { return stem + "_" + std::to_string(counter_++); }

  void phase(size_t index) {
    const Phase& p = kernel_.phases[index];
    names_.clear();
    buffers_.clear();
    std::string head = "\n__kernel void " + kernel_.name + "_p" + std::to_string(index) + "(";
    for (const Buffer& b : kernel_.params) {
      const std::string name = buffers_[b.get()] = fresh(b->name);
      head += "__global " + std::string(b->access == Access::in ? "const " : "") + scalar_name(b->type.dtype) + "* " +
              name + ", ";
    }
    for (const Var& d : kernel_.dims) head += "long " + (names_[d.get()] = fresh(d->name)) + ", ";
    out_ += head + "__global int* status) {\n";
    depth_ = 1;
    // __local arrays must be declared at the kernel's outermost level.
    visit(
        p.body,
        [&](const StmtNode& s) {
          if (s.kind == StmtKind::alloc && is_local(*s.buffer))
            line("__local " + array(*s.buffer, buffers_[s.buffer.get()] = fresh(s.buffer->name)) + ";");
        },
        [](const ExprNode&) {});
    line("const long " + (names_[p.task.get()] = fresh(p.task->name)) + " = (long)get_group_id(0);");
    body(p.body);
    out_ += "}\n";
  }

  static bool is_local(const BufferInfo& b) { return b.space == Space::shared || b.space == Space::scratch; }

  std::string array(const BufferInfo& b, const std::string& name) {
    int64_t n = 1;
    for (const Expr& e : b.shape) n *= e->int_value;
    return value_name(b.type.dtype == DType::boolean ? Type{DType::u8, b.type.lanes} : b.type) + " " + name + "[" +
           std::to_string(n > 0 ? n : 1) + "]";
  }

  void body(const std::vector<Stmt>& statements) {
    for (const Stmt& s : statements) stmt(*s);
  }

  void block(const std::vector<Stmt>& statements) {
    ++depth_;
    body(statements);
    --depth_;
    line("}");
  }

  void stmt(const StmtNode& s) {
    values_.clear();  // temporaries live for one statement: their operands may change after it
    switch (s.kind) {
      case StmtKind::block:
        line("{");
        block(s.body);
        break;
      case StmtKind::loop:
        loop(s);
        break;
      case StmtKind::let: {
        const std::string value = expr(s.value);
        line("const " + value_name(s.variable->type) + " " + (names_[s.variable.get()] = fresh(s.variable->name)) +
             " = " + value + ";");
        break;
      }
      case StmtKind::alloc:
        if (!is_local(*s.buffer)) line(array(*s.buffer, buffers_[s.buffer.get()] = fresh(s.buffer->name)) + ";");
        break;
      case StmtKind::store:
        store(s);
        break;
      case StmtKind::branch:
        line("if (" + expr(s.value) + ") {");
        ++depth_;
        body(s.body);
        --depth_;
        if (!s.otherwise.empty()) {
          line("} else {");
          ++depth_;
          body(s.otherwise);
          --depth_;
        }
        line("}");
        break;
      case StmtKind::prefetch:
        break;  // a hint
      case StmtKind::barrier:
        line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);");
        break;
      case StmtKind::fail:
        line("*status = " + std::to_string(s.code) + "; return;");
        break;
    }
  }

  void loop(const StmtNode& s) {
    const std::string begin = expr(s.begin), end = expr(s.end);
    const std::string i = names_[s.variable.get()] = fresh(s.variable->name), step = std::to_string(s.step);
    std::string first = begin, by = step;
    const int axis = static_cast<int>(s.loop) - static_cast<int>(LoopKind::gpu_thread_x);
    if (axis >= 0) {
      const std::string a = std::to_string(axis);
      first = begin + " + (long)get_local_id(" + a + ") * " + step;
      by = "(long)get_local_size(" + a + ") * " + step;
    }
    line("for (long " + i + " = " + first + "; " + i + " < " + end + "; " + i + " += " + by + ") {");
    block(s.body);
  }

  /// Linear index in elements.
  std::string index(const BufferInfo& b, const std::vector<Expr>& indices, size_t n) {
    std::string linear = "0L";
    for (size_t d = 0; d < n; ++d) {
      if (b.strides.empty()) {
        linear = "(" + linear + ") * " + expr(b.shape[d]) + " + " + expr(indices[d]);
      } else {
        linear += " + " + expr(indices[d]) + " * " + expr(b.strides[d]);
      }
    }
    return "(" + linear + ")";
  }

  static std::string component(const std::string& v, int lanes, int i) {
    if (lanes == 1) return v;
    static const char* const kHex = "0123456789abcdef";
    return v + ".s" + kHex[i];
  }

  void store(const StmtNode& s) {
    const BufferInfo& b = *s.buffer;
    const std::string name = buffers_.at(s.buffer.get());
    const Type t = s.value.type();
    const std::string value = expr(s.value), at = name_value({DType::i64, 1}, index(b, s.indices, s.indices.size()));
    const std::string mask = s.mask ? expr(s.mask) : "";
    if (t.lanes == 1 || b.type.is_vector()) {
      line((mask.empty() ? "" : "if (" + mask + ") ") + name + "[" + at + "] = " + value + ";");
      return;
    }
    for (int i = 0; i < t.lanes; ++i)
      line((mask.empty() ? "" : "if (" + component(mask, t.lanes, i) + ") ") + name + "[" + at + " + " +
           std::to_string(i) + "] = " + component(value, t.lanes, i) + ";");
  }

  /// Names a value so that it is computed once.
  std::string name_value(Type t, const std::string& text) {
    const std::string name = fresh("x");
    line("const " + value_name(t) + " " + name + " = " + text + ";");
    return name;
  }

  std::string expr(const Expr& e) {
    if (e->op == Op::const_int || e->op == Op::const_float) return literal(e.type(), e->int_value, e->float_value);
    if (e->op == Op::var) return names_.at(e->variable.get());
    auto found = values_.find(e.get());
    if (found != values_.end()) return found->second;
    const std::string name = e->op == Op::load ? load(*e) : compute(*e);
    return values_[e.get()] = name;
  }

  std::string load(const ExprNode& e) {
    const BufferInfo& b = *e.buffer;
    const std::string name = buffers_.at(e.buffer.get());
    const size_t rank = b.shape.size();
    const std::string mask = e.has_mask ? expr(e.args.back()) : "";
    bool gather = false;
    for (size_t d = 0; d < rank; ++d) gather = gather || e.args[d].type().is_vector();
    if (!gather) {
      const std::string at = name_value({DType::i64, 1}, index(b, e.args, rank));
      if (e.type.lanes == 1 || b.type.is_vector())
        return name_value(e.type, mask.empty() ? name + "[" + at + "]"
                                               : mask + " ? " + name + "[" + at + "] : (" + value_name(e.type) + ")0");
      return lanes_of(e.type, [&](int i) {
        const std::string one = name + "[" + at + " + " + std::to_string(i) + "]";
        return mask.empty() ? one : "(" + component(mask, e.type.lanes, i) + " ? " + one + " : 0)";
      });
    }
    return lanes_of(e.type, [&](int i) {
      std::string linear = "0L";
      for (size_t d = 0; d < rank; ++d) {
        const std::string index = component(expr(e.args[d]), e.args[d].type().lanes, i);
        linear = b.strides.empty() ? "(" + linear + ") * " + expr(b.shape[d]) + " + " + index
                                   : linear + " + " + index + " * " + expr(b.strides[d]);
      }
      const std::string one = name + "[" + linear + "]";
      return mask.empty() ? one : "(" + component(mask, e.type.lanes, i) + " ? " + one + " : 0)";
    });
  }

  template <class F>
  std::string lanes_of(Type t, F&& one) {
    std::string text = "(" + value_name(t) + ")(";
    for (int i = 0; i < t.lanes; ++i) text += (i ? ", " : "") + std::string(one(i));
    return name_value(t, text + ")");
  }

  /// Everything is computed lane by lane: one rule set for scalars and vectors.
  std::string compute(const ExprNode& e) {
    std::vector<std::string> a;
    for (const Expr& x : e.args) a.push_back(expr(x));
    const int n = e.type.lanes;
    auto at = [&](size_t k, int i) { return component(a[k], e.args[k].type().lanes, i); };
    switch (e.op) {
      case Op::broadcast:
        return lanes_of(e.type, [&](int) { return a[0]; });
      case Op::ramp:
        return lanes_of(e.type, [&](int i) { return a[0] + " + " + a[1] + " * " + std::to_string(i); });
      case Op::lane:
        return name_value(e.type, at(0, static_cast<int>(e.int_value)));
      case Op::shuffle: {
        const int width = e.args[0].type().lanes;
        return lanes_of(e.type, [&](int i) {
          const int from = e.lanes[static_cast<size_t>(i)];
          return at(static_cast<size_t>(from / width), from % width);
        });
      }
      case Op::reduce_add:
      case Op::reduce_max:
      case Op::reduce_min: {
        std::string r = at(0, 0);
        for (int i = 1; i < e.args[0].type().lanes; ++i)
          r = e.op == Op::reduce_add ? "(" + r + " + " + at(0, i) + ")"
                                     : (e.op == Op::reduce_max ? "k_max(" : "k_min(") + r + ", " + at(0, i) + ")";
        return name_value(e.type, r);
      }
      default:
        break;
    }
    auto one = [&](int i) { return lane_text(e, i, at); };
    return n == 1 ? name_value(e.type, one(0)) : lanes_of(e.type, one);
  }

  template <class At>
  std::string lane_text(const ExprNode& e, int i, At&& at) {
    const Type from = e.args[0].type().element(), to = e.type.element();
    const bool logic = to.dtype == DType::boolean;
    auto call = [&](const std::string& f) {
      std::string s = f + "(" + at(0, i);
      for (size_t k = 1; k < e.args.size(); ++k) s += ", " + at(k, i);
      return s + ")";
    };
    auto infix = [&](const std::string& op) {
      // Narrow integers promote to int: the cast wraps the result back.
      return "(" + value_name(to) + ")(" + at(0, i) + " " + op + " " + at(1, i) + ")";
    };
    switch (e.op) {
      case Op::add:
      case Op::sub:
      case Op::mul: {
        const std::string op(info(e.op).text);
        if (is_signed_int(to.dtype) && size_of(to.dtype) >= 4) {  // wrap without signed overflow
          const std::string u = "(u" + value_name(to) + ")";
          return "(" + value_name(to) + ")(" + u + at(0, i) + " " + op + " " + u + at(1, i) + ")";
        }
        return infix(op);
      }
      case Op::div:
        return call("k_div");
      case Op::floordiv:
        return call("k_floordiv");
      case Op::floormod:
        return call("k_floormod");
      case Op::min:
        return call("k_min");
      case Op::max:
        return call("k_max");
      case Op::shl:
        return call("k_shl");
      case Op::shr:
        return call("k_shr");
      case Op::neg:
        return is_float(to.dtype) ? "(-" + at(0, i) + ")" : "(" + value_name(to) + ")(0 - " + at(0, i) + ")";
      case Op::abs:
        return is_float(to.dtype)
                   ? call("fabs")
                   : "(" + at(0, i) + " < 0 ? (" + value_name(to) + ")(0 - " + at(0, i) + ") : " + at(0, i) + ")";
      case Op::round:
        return call("rint");
      case Op::sigmoid:
        return call("k_sigmoid");
      case Op::eq:
      case Op::ne:
      case Op::lt:
      case Op::le:
      case Op::gt:
      case Op::ge:
      case Op::bit_and:
      case Op::bit_or:
      case Op::bit_xor:
        return infix(std::string(info(e.op).text));
      case Op::bit_not:
        return logic ? "(!" + at(0, i) + ")" : "(" + value_name(to) + ")(~" + at(0, i) + ")";
      case Op::select:
        return "(" + at(0, i) + " ? " + at(1, i) + " : " + at(2, i) + ")";
      case Op::cast:
        if (logic) return "(" + at(0, i) + " != 0)";
        if (is_float(from.dtype) && is_int(to.dtype))
          return "convert_" + scalar_name(to.dtype) + "_sat_rtz(" + at(0, i) + ")";
        return "(" + scalar_name(to.dtype) + ")(" + at(0, i) + ")";
      case Op::bitcast:
        return "as_" + scalar_name(to.dtype) + "(" + at(0, i) + ")";
      default:
        return call(std::string(info(e.op).name));  // OpenCL C's built-in functions have the same names
    }
  }

  const Kernel& kernel_;
  std::string out_;
  int depth_ = 0, counter_ = 0;
  std::map<const VarInfo*, std::string> names_;
  std::map<const BufferInfo*, std::string> buffers_;
  std::map<const ExprNode*, std::string> values_;
};

}  // namespace

std::optional<std::string> refuse_opencl(const Kernel& kernel) {
  std::optional<std::string> reason;
  auto no = [&](const std::string& why) {
    if (!reason) reason = why;
  };
  auto check_type = [&](Type t) {
    if (t.dtype == DType::f16 || t.dtype == DType::bf16)
      no("16-bit floats need OpenCL extensions that are not used yet");
    if (t.dtype == DType::f64) no("f64 is not part of OpenCL C 1.2's core");
    if (t.lanes != 1 && t.lanes != 2 && t.lanes != 4 && t.lanes != 8 && t.lanes != 16)
      no("OpenCL C has no vectors of " + std::to_string(t.lanes) + " lanes");
  };
  for (const Buffer& b : kernel.params) check_type(b->type);
  for (const Phase& p : kernel.phases)
    visit(
        p.body,
        [&](const StmtNode& s) {
          if (s.kind != StmtKind::alloc) return;
          check_type(s.buffer->type);
          for (const Expr& e : s.buffer->shape)
            if (e->op != Op::const_int) no("array '" + s.buffer->name + "' has no constant size");
        },
        [&](const ExprNode& e) {
          check_type(e.type);
          if (e.op == Op::dot) no("dot products need extensions that are not used yet");
        });
  return reason;
}

std::string print_opencl(const Kernel& kernel) {
  if (std::optional<std::string> reason = refuse_opencl(kernel))
    throw_unsupported("kernel " + kernel.name + " in OpenCL C: " + *reason);
  return Printer(kernel).run();
}

}  // namespace cuvil::backends
