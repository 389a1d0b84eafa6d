// Kernel IR as text. The text depends on the structure alone, not on which nodes are shared in memory, and names no
// locations: equal kernels print equally.
#include <charconv>
#include <cmath>
#include <cstring>
#include <set>
#include <unordered_map>

#include "core/base/error.h"
#include "core/kernel/parse.h"
#include "core/kernel/syntax.h"

namespace cuvil::kernel {
namespace {

/// Subexpressions that occur twice in a statement and are at least this large are written once: (#0 = ...), then #0.
/// Without this, text of values that share operands could grow exponentially.
constexpr int64_t kSharedSize = 32;

std::string float_text(DType dtype, double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end = dtype == DType::f64 ? std::to_chars(buffer, buffer + sizeof buffer, value)
                                       : std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(value));
  std::string text(buffer, end.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string constant_text(const ExprNode& n) {
  if (n.type == kBool) return n.int_value ? "true" : "false";
  std::string text;
  if (n.op == Op::const_float) {
    text = float_text(n.type.dtype, n.float_value);
  } else if (n.type.dtype == DType::u64) {
    text = std::to_string(static_cast<uint64_t>(n.int_value));
  } else {
    text = std::to_string(n.int_value);
  }
  if (n.type.dtype == DType::i64 || n.type.dtype == DType::f32) return text;
  return std::string(name_of(n.type.dtype)) + "(" + text + ")";
}

std::string plain_name(const std::string& name) {
  std::string out;
  for (char c : name) out += is_name_char(c) ? c : '_';
  return out.empty() ? "v" : out;
}

class Printer {
 public:
  std::string kernel(const Kernel& k) {
    out_ = "kernel @" + k.name;
    if (!k.dims.empty()) {
      out_ += "<";
      for (size_t i = 0; i < k.dims.size(); ++i) {
        out_ += i ? ", " : "";
        bind(k.dims[i].get(), k.dims[i]->name);
      }
      out_ += ">";
    }
    out_ += k.params.size() > 1 ? "(\n    " : "(";
    for (size_t i = 0; i < k.params.size(); ++i) {
      out_ += i ? ",\n    " : "";
      const BufferInfo& b = *k.params[i];
      declare(b);
      out_ += " ";
      out_ += b.space == Space::constant ? "constant" : kAccessNames[static_cast<int>(b.access)];
      strides(b);
    }
    out_ += ") {\n";
    indent_ = 1;
    for (const Phase& p : k.phases) {
      line("phase ");
      const size_t mark = bound_.size();
      std::string tasks = take([&] { top(p.tasks); });
      bind(p.task.get(), p.task->name);
      out_ += " in 0 .. " + tasks + " {\n";
      body(p.body);
      close(mark);
    }
    out_ += "}\n";
    return std::move(out_);
  }

  std::string expression(const Expr& e) {
    free_ = true;
    top(e);
    return std::move(out_);
  }

 private:
  template <class F>
  std::string take(const F& f) {
    std::string outer = std::move(out_);
    out_.clear();
    f();
    std::swap(outer, out_);
    return outer;
  }

  void line(std::string_view text) {
    out_.append(static_cast<size_t>(2 * indent_), ' ');
    out_ += text;
  }

  // ---- names: unique among those that are visible

  void bind(const void* key, const std::string& wanted) {
    const std::string base = plain_name(wanted);
    std::string name = base;
    for (int i = 2; used_.contains(name); ++i) name = base + "_" + std::to_string(i);
    used_.insert(name);
    names_[key].push_back(name);
    bound_.push_back(key);
    out_ += "%" + name;
  }
  void release(size_t mark) {
    for (; bound_.size() > mark; bound_.pop_back()) {
      auto& names = names_[bound_.back()];
      used_.erase(names.back());
      names.pop_back();
    }
  }
  void use(const void* key, const std::string& name) {
    const auto found = names_.find(key);
    const bool bound = found != names_.end() && !found->second.empty();
    CUVIL_CHECK(bound || free_, "the kernel uses " + name + " where it is not visible");
    out_ += "%" + (bound ? found->second.back() : plain_name(name));
  }

  // ---- statements

  void body(const std::vector<Stmt>& statements) {
    ++indent_;
    for (const Stmt& s : statements) statement(*s);
    --indent_;
  }
  void close(size_t mark) {
    release(mark);
    line("}\n");
  }
  void block(const std::vector<Stmt>& statements) {
    const size_t mark = bound_.size();
    body(statements);
    release(mark);
  }

  void declare(const BufferInfo& b) {
    const std::string shape = take([&] { list(b.shape); });
    bind(&b, b.name);
    out_ += ": " + b.type.str() + "[" + shape + "]";
  }
  void strides(const BufferInfo& b) {
    if (b.strides.empty()) return;
    out_ += " strides [";
    list(b.strides);
    out_ += "]";
  }

  void statement(const StmtNode& s) {
    line("");
    switch (s.kind) {
      case StmtKind::block:
        out_ += "{\n";
        block(s.body);
        line("}\n");
        return;
      case StmtKind::loop: {
        out_ += "for ";
        const size_t mark = bound_.size();
        const std::string range = take([&] {
          top(s.begin);
          out_ += " .. ";
          top(s.end);
        });
        bind(s.variable.get(), s.variable->name);
        out_ += " in " + range;
        if (s.step != 1) out_ += " step " + std::to_string(s.step);
        if (s.loop != LoopKind::serial) out_ += " " + std::string(kLoopNames[static_cast<int>(s.loop)]);
        out_ += " {\n";
        body(s.body);
        close(mark);
        return;
      }
      case StmtKind::let: {
        out_ += "let ";
        const std::string value = take([&] { top(s.value); });
        bind(s.variable.get(), s.variable->name);
        out_ += ": " + s.variable->type.str() + " = " + value;
        break;
      }
      case StmtKind::alloc:
        out_ += "alloc ";
        declare(*s.buffer);
        out_ += " " + std::string(kSpaceNames[static_cast<int>(s.buffer->space)]);
        strides(*s.buffer);
        break;
      case StmtKind::store:
        begin_sharing({s.value, s.mask}, s.indices);
        access(s.buffer, s.indices, s.value.type(), s.mask);
        out_ += " = ";
        expr(s.value, 0);
        break;
      case StmtKind::branch:
        out_ += "if ";
        top(s.value);
        out_ += " {\n";
        block(s.body);
        if (!s.otherwise.empty()) {
          line("} else {\n");
          block(s.otherwise);
        }
        line("}\n");
        return;
      case StmtKind::prefetch:
        out_ += "prefetch ";
        begin_sharing({}, s.indices);
        access(s.buffer, s.indices, s.buffer->type, {});
        out_ += " level " + std::to_string(s.code);
        break;
      case StmtKind::barrier:
        out_ += "barrier";
        break;
      case StmtKind::fail:
        out_ += "fail " + std::to_string(s.code);
        break;
    }
    out_ += "\n";
  }

  // ---- expressions

  /// A node up to structure: equal subtrees have one. They live for one statement.
  struct Shape {
    int64_t size = 1;
    std::vector<int> operands;
    int uses = 0;
    int label = -1;
  };

  int number(const Expr& e) {
    if (const auto found = number_of_.find(e.get()); found != number_of_.end()) return found->second;
    std::string key;
    auto add = [&key](const auto& v) { key.append(reinterpret_cast<const char*>(&v), sizeof v); };
    add(e->op);
    add(e->type.dtype);
    add(e->type.lanes);
    add(e->int_value);
    add(std::isnan(e->float_value) ? std::nan("") : e->float_value);
    add(e->variable.get());
    add(e->buffer.get());
    add(e->has_mask);
    for (int i : e->lanes) add(i);
    Shape shape;
    for (const Expr& a : e->args) {
      const int n = number(a);
      add(n);
      shape.operands.push_back(n);
      shape.size = std::min<int64_t>(shape.size + shapes_[static_cast<size_t>(n)].size, int64_t{1} << 40);
    }
    const auto [it, fresh] = numbers_.emplace(std::move(key), static_cast<int>(shapes_.size()));
    if (fresh) shapes_.push_back(std::move(shape));
    number_of_.emplace(e.get(), it->second);
    return it->second;
  }
  /// Counts how often a shape is written if what was written before is named.
  void count(int number) {
    Shape& shape = shapes_[static_cast<size_t>(number)];
    if (++shape.uses == 1)
      for (int operand : shape.operands) count(operand);
  }

  /// Nodes of the tree, counted up to a bound.
  static int64_t size_up_to(const Expr& e, int64_t bound) {
    int64_t size = 1;
    for (const Expr& a : e->args)
      if (size < bound) size += size_up_to(a, bound - size);
    return size;
  }
  void begin_sharing(std::initializer_list<Expr> values, const std::vector<Expr>& more) {
    number_of_.clear();
    numbers_.clear();
    shapes_.clear();
    labels_ = 0;
    std::vector<Expr> all = more;
    for (const Expr& e : values)
      if (e) all.push_back(e);
    int64_t size = 0;
    for (const Expr& e : all) size += size_up_to(e, 2 * kSharedSize);
    if (size < 2 * kSharedSize) return;  // nothing large occurs twice
    for (const Expr& e : all) number(e);
    for (const Expr& e : all) count(number(e));
  }
  void top(const Expr& e) {
    begin_sharing({e}, {});
    expr(e, 0);
  }
  void list(const std::vector<Expr>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      out_ += i ? ", " : "";
      top(values[i]);
    }
  }

  void access(const Buffer& buffer, std::span<const Expr> indices, Type value, const Expr& mask) {
    use(buffer.get(), buffer->name);
    out_ += "[";
    bool gather = false;
    for (size_t i = 0; i < indices.size(); ++i) {
      out_ += i ? ", " : "";
      gather = gather || indices[i].type().is_vector();
      expr(indices[i], 0);
    }
    if (!gather && value.is_vector() && !buffer->type.is_vector()) out_ += " : " + std::to_string(value.lanes);
    if (mask) {
      out_ += indices.empty() ? "? " : " ? ";
      expr(mask, 0);
    }
    out_ += "]";
  }

  void expr(const Expr& e, int context) {
    Shape* shape = nullptr;
    if (const auto found = number_of_.find(e.get()); found != number_of_.end())
      shape = &shapes_[static_cast<size_t>(found->second)];
    if (!shape || shape->uses < 2 || shape->size < kSharedSize) {
      node(e, context);
      return;
    }
    if (shape->label >= 0) {
      out_ += "#" + std::to_string(shape->label);
      return;
    }
    const int label = labels_++;
    out_ += "(#" + std::to_string(label) + " = ";
    node(e, 0);
    out_ += ")";
    shape->label = label;
  }

  void node(const Expr& e, int context) {
    const ExprNode& n = *e;
    switch (n.op) {
      case Op::const_int:
      case Op::const_float:
        out_ += constant_text(n);
        return;
      case Op::var:
        use(n.variable.get(), n.variable->name);
        return;
      case Op::load: {
        const std::span<const Expr> args(n.args);
        access(n.buffer, args.first(args.size() - (n.has_mask ? 1 : 0)), n.type, n.has_mask ? n.args.back() : Expr());
        return;
      }
      default:
        break;
    }
    const int strength = precedence(n.op);
    if (strength > 0) {
      const bool parentheses = strength < context;
      out_ += parentheses ? "(" : "";
      expr(n.args[0], strength);
      out_ += " " + std::string(info(n.op).text) + " ";
      expr(n.args[1], strength + 1);
      out_ += parentheses ? ")" : "";
      return;
    }
    out_ += n.op == Op::bit_not ? "not" : info(n.op).text;
    out_ += "(";
    if (n.op == Op::cast) out_ += std::string(name_of(n.type.dtype)) + ", ";
    if (n.op == Op::bitcast) out_ += n.type.str() + ", ";
    for (size_t i = 0; i < n.args.size(); ++i) {
      out_ += i ? ", " : "";
      expr(n.args[i], 0);
    }
    if (n.op == Op::ramp || n.op == Op::broadcast) out_ += ", " + std::to_string(n.type.lanes);
    if (n.op == Op::lane) out_ += ", " + std::to_string(n.int_value);
    if (n.op == Op::shuffle) {
      out_ += ", [";
      for (size_t i = 0; i < n.lanes.size(); ++i) out_ += (i ? ", " : "") + std::to_string(n.lanes[i]);
      out_ += "]";
    }
    out_ += ")";
  }

  std::string out_;
  int indent_ = 0;
  bool free_ = false;  ///< names may be unbound: an expression alone
  std::set<std::string> used_;
  std::unordered_map<const void*, std::vector<std::string>> names_;
  std::vector<const void*> bound_;
  std::unordered_map<const ExprNode*, int> number_of_;
  std::unordered_map<std::string, int> numbers_;
  std::vector<Shape> shapes_;
  int labels_ = 0;
};

}  // namespace

std::string print(const Kernel& kernel) { return Printer().kernel(kernel); }
std::string print(const Expr& expr) { return expr ? Printer().expression(expr) : "(none)"; }

}  // namespace cuvil::kernel
