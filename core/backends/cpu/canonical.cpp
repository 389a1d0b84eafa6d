#include "core/backends/cpu/canonical.h"

#include <bit>
#include <charconv>
#include <unordered_map>

namespace cuvil::backends::cpu {
namespace {

using kernel::Expr;

/// Writes tags, numbers and counts, each ended by a separator, so that different kernels differ in text. Variables,
/// buffers and expressions get their number where they first occur.
class Writer {
 public:
  std::string text;

  void kernel(const kernel::Kernel& k) {
    for (const kernel::Var& d : k.dims) variable(d);
    tag('D');
    for (const kernel::Buffer& p : k.params) buffer(p);
    for (const kernel::Phase& p : k.phases) {
      tag('P');
      expr(p.tasks);
      variable(p.task);
      body(p.body);
    }
  }

 private:
  std::unordered_map<const kernel::VarInfo*, int64_t> vars_;
  std::unordered_map<const kernel::BufferInfo*, int64_t> buffers_;
  std::unordered_map<const kernel::ExprNode*, int64_t> exprs_;

  void tag(char c) { text += c; }
  void number(int64_t n) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof(digits), n).ptr;
    text.append(digits, end);
    text += ' ';
  }
  void type(kernel::Type t) {
    number(static_cast<int>(t.dtype));
    number(t.lanes);
  }
  void variable(const kernel::Var& v) {
    const auto [at, is_new] = vars_.emplace(v.get(), vars_.size());
    tag(is_new ? 'V' : 'v');
    number(at->second);
    if (is_new) type(v->type);
  }
  void buffer(const kernel::Buffer& b) {
    const auto [at, is_new] = buffers_.emplace(b.get(), buffers_.size());
    tag(is_new ? 'B' : 'b');
    number(at->second);
    if (!is_new) return;
    type(b->type);
    number(static_cast<int>(b->space));
    number(static_cast<int>(b->access));
    list(b->shape);
    list(b->strides);
  }
  void list(std::span<const Expr> exprs) {
    number(static_cast<int64_t>(exprs.size()));
    for (const Expr& e : exprs) expr(e);
  }
  void expr(const Expr& e) {
    if (!e) return tag('-');
    if (const auto at = exprs_.find(e.get()); at != exprs_.end()) {
      tag('e');
      return number(at->second);
    }
    tag('E');
    number(static_cast<int>(e->op));
    type(e->type);
    number(e->int_value);
    number(std::bit_cast<int64_t>(e->float_value));
    if (e->variable) variable(e->variable);
    if (e->buffer) buffer(e->buffer);
    if (e->has_mask) tag('m');
    for (int lane : e->lanes) number(lane);
    list(e->args);
    // Numbered behind its operands; the handle stays alive with the kernel.
    exprs_.emplace(e.get(), exprs_.size());
  }
  void body(const std::vector<kernel::Stmt>& statements) {
    tag('{');
    for (const kernel::Stmt& s : statements) statement(*s);
    tag('}');
  }
  void statement(const kernel::StmtNode& s) {
    tag('S');
    number(static_cast<int>(s.kind));
    number(s.step);
    number(static_cast<int>(s.loop));
    number(s.code);
    expr(s.begin);
    expr(s.end);
    expr(s.value);
    if (s.variable) variable(s.variable);
    if (s.buffer) buffer(s.buffer);
    list(s.indices);
    expr(s.mask);
    body(s.body);
    body(s.otherwise);
  }
};

}  // namespace

std::string canonical_text(const kernel::Kernel& kernel) {
  Writer w;
  w.kernel(kernel);
  return std::move(w.text);
}

}  // namespace cuvil::backends::cpu
