// The text form, written. The grammar stands in docs/cir.md.
#include <algorithm>
#include <cstdio>

#include "core/ir/graph.h"
#include "core/ir/text.h"

namespace cuvil::ir {
namespace {

constexpr int64_t kInlineElements = 16;

/// FNV-1a.
uint64_t hash_of(const Tensor& t) {
  uint64_t h = 0xcbf29ce484222325;
  const int64_t n = t.bytes();
  for (int64_t i = 0; i < n; ++i) h = (h ^ t.raw()[i]) * 0x100000001b3;
  return h;
}

class Printer {
 public:
  explicit Printer(bool full) : full_(full) {}

  std::string run(const Graph& g) {
    out_ += "graph @" + name(g.name) + "(";
    params(g.body, &g);
    out_ += ") -> (";
    for (size_t i = 0; i < g.body.results.size(); ++i) {
      if (i) out_ += ", ";
      const Value* v = g.body.results[i];
      if (i < g.output_names.size() && g.output_names[i] != v->name) out_ += name(g.output_names[i]) + " = ";
      out_ += value(v);
    }
    out_ += ")";
    if (!g.source.empty()) out_ += " source(" + text::quote(g.source) + ")";
    out_ += " {\n";
    nodes(g.body, 2);
    out_ += "}\n";
    return std::move(out_);
  }

 private:
  static std::string name(std::string_view s) { return text::is_bare_name(s) ? std::string(s) : text::quote(s); }
  static std::string value(const Value* v) { return v ? "%" + name(v->name) : "_"; }

  void params(const Region& r, const Graph* graph = nullptr) {
    for (size_t i = 0; i < r.params.size(); ++i) {
      out_ += (i ? ", " : "") + value(r.params[i].get()) + ": " + r.params[i]->type.str();
      if (!graph) continue;
      if (auto it = graph->fixed_inputs.find(r.params[i]->name); it != graph->fixed_inputs.end()) {
        out_ += " = ";
        print(it->second);
      }
    }
  }

  void nodes(const Region& r, size_t indent) {
    for (const auto& n : r.nodes) node(*n, indent);
  }

  void node(const Node& n, size_t indent) {
    out_.append(indent, ' ');
    for (size_t i = 0; i < n.outputs.size(); ++i) out_ += (i ? ", " : "") + value(n.output(i));
    if (!n.outputs.empty()) out_ += " = ";
    out_ += n.op + "(";
    for (size_t i = 0; i < n.inputs().size(); ++i) out_ += (i ? ", " : "") + value(n.input(i));
    out_ += ")";
    rank_ = n.outputs.empty() ? 0 : n.output()->type.rank();
    attributes(n.attributes);
    for (const Region& r : n.regions) region(r, indent);
    for (size_t i = 0; i < n.outputs.size(); ++i) out_ += (i ? ", " : " : ") + n.output(i)->type.str();
    location(n.location);
    out_ += "\n";
  }

  void region(const Region& r, size_t indent) {
    out_ += " { (";
    params(r);
    out_ += ")\n";
    nodes(r, indent + 2);
    out_.append(indent + 2, ' ');
    out_ += "yield";
    for (size_t i = 0; i < r.results.size(); ++i) out_ += (i ? ", " : " ") + value(r.results[i]);
    out_ += "\n";
    out_.append(indent, ' ');
    out_ += "}";
  }

  void location(const Location& l) {
    if (l == Location{}) return;
    std::string s;
    if (!l.file.empty() || l.line) s = text::quote(l.file);
    if (l.line) s += ":" + std::to_string(l.line);
    const auto part = [&](const std::string& text) { s += (s.empty() ? "" : " ") + text; };
    if (!l.function.empty()) part("in " + text::quote(l.function));
    if (!l.module_path.empty()) part("module " + text::quote(l.module_path));
    if (!l.variable.empty()) part(text::quote(l.variable, '\''));
    out_ += " loc(" + s + ")";
  }

  void attributes(const Attributes& all) {
    if (all.empty()) return;
    out_ += " {";
    bool first = true;
    for (const auto& [key, attribute] : all) {
      out_ += (first ? "" : ", ") + name(key) + " = ";
      std::visit([&](const auto& v) { print(v); }, attribute);
      first = false;
    }
    out_ += "}";
  }

  void print(int64_t v) { out_ += std::to_string(v); }
  void print(double v) { out_ += text::real(v); }
  void print(const std::string& v) { out_ += text::quote(v); }
  void print(DType v) { out_ += name_of(v); }
  void print(const Shape& v) { out_ += "shape" + to_string(v); }
  template <class T>
  void list(const std::vector<T>& v, const char* kind_if_empty) {
    if (v.empty()) out_ += kind_if_empty;
    out_ += "[";
    for (size_t i = 0; i < v.size(); ++i) {
      if (i) out_ += ", ";
      print(v[i]);
    }
    out_ += "]";
  }
  void print(const std::vector<int64_t>& v) { list(v, ""); }
  void print(const std::vector<double>& v) { list(v, "reals"); }
  void print(const std::vector<std::string>& v) { list(v, "strings"); }
  /// A layout does not say its rank: that of the node's result, if it fits.
  void print(const Layout& v) {
    int rank = v.order.empty() ? rank_ : static_cast<int>(v.order.size());
    if (v.is_plain()) rank = 0;
    if (v.order.empty())
      for (const Layout::Block& b : v.blocks) rank = std::max(rank, b.axis + 1);
    out_ += "layout(\"" + v.str(rank) + "\")";
  }
  void print(const Tensor& t) {
    out_ += "dense<" + t.type.str() + ", ";
    const int64_t bytes = t.bytes();
    const int64_t n = bytes / size_of(t.type.dtype);
    if (n <= kInlineElements && !has_nan(t, n)) {
      out_ += "[";
      for (int64_t i = 0; i < n; ++i) {
        if (i) out_ += ", ";
        element(t, i);
      }
      out_ += "]";
    } else if (full_) {
      static constexpr char kHex[] = "0123456789abcdef";
      out_ += "0x";
      out_.reserve(out_.size() + static_cast<size_t>(2 * bytes));
      for (int64_t i = 0; i < bytes; ++i) {
        out_ += kHex[t.raw()[i] >> 4];
        out_ += kHex[t.raw()[i] & 15];
      }
    } else {
      char text[24];
      std::snprintf(text, sizeof text, "#%016llx", static_cast<unsigned long long>(hash_of(t)));
      out_ += text;
    }
    out_ += ">";
  }

  /// The bits of a NaN are part of the constant; decimals lose them.
  static bool has_nan(const Tensor& t, int64_t n) {
    for (int64_t i = 0; i < n && is_float(t.type.dtype); ++i)
      if (const double v = t.as_double(i); v != v) return true;
    return false;
  }
  void element(const Tensor& t, int64_t i) {
    const DType d = t.type.dtype;
    if (d == DType::f64)
      out_ += text::real(t.as_double(i));
    else if (is_float(d))
      out_ += text::real(static_cast<float>(t.as_double(i)));
    else if (d == DType::boolean && t.raw()[i] <= 1)
      out_ += t.raw()[i] ? "true" : "false";
    else if (d == DType::boolean)
      out_ += std::to_string(t.raw()[i]);
    else if (d == DType::u64)
      out_ += std::to_string(static_cast<uint64_t>(t.as_int(i)));
    else
      out_ += std::to_string(t.as_int(i));
  }

  bool full_;
  int rank_ = 0;  ///< of the result of the node being printed
  std::string out_;
};

}  // namespace

std::string print(const Graph& graph, bool full) { return Printer(full).run(graph); }

}  // namespace cuvil::ir
