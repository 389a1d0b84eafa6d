// The text form, read: recursive descent over bytes. The grammar stands in docs/cir.md. Every error is a ModelError
// with line and column; sizes of constants are bounded by the text that states them, nesting by kMaxNesting.
#include <charconv>
#include <limits>
#include <map>

#include "core/ir/graph.h"
#include "core/ir/text.h"
#include "core/ir/text_reader.h"

namespace cuvil::ir {
namespace {

class Parser : public text::Reader {
 public:
  Parser(std::string_view text, std::string source) : Reader(text, std::move(source)) {}

  Graph run() {
    word("graph");
    expect("@");
    graph_.name = name();
    expect("(");
    parse_params(graph_.body, true);
    expect(")");
    expect("->");
    const size_t results_at = skip_results();
    if (accept_word("source")) {
      expect("(");
      graph_.source = string();
      expect(")");
    }
    expect("{");
    while (!accept("}")) parse_node(graph_.body, 0);
    end();
    const size_t stop = position();
    go_to(results_at);
    parse_results();
    go_to(stop);
    if (const std::optional<std::string> broken = find_violation(graph_)) fail("this is no valid graph: " + *broken);
    return std::move(graph_);
  }

 private:
  // ---- graph, regions, nodes

  void parse_params(Region& region, bool of_graph = false) {
    if (peek(")")) return;
    do {
      const std::string n = new_name();
      expect(":");
      auto v = std::make_unique<Value>();
      v->name = n;
      v->type = type();
      define(n, v.get());
      if (of_graph && accept("=")) {
        if (!accept_word("dense")) fail("an input's value is written dense<TYPE, ...>");
        graph_.fixed_inputs[n] = tensor();
      }
      region.params.push_back(std::move(v));
    } while (accept(","));
  }

  /// Results stand before the nodes that define them: they are passed over, and read at the end.
  size_t skip_results() {
    const size_t at = position();
    expect("(");
    while (!accept(")")) {
      if (at_end()) expect(")");
      if (peek("\"") || peek("%\""))
        accept("%"), string();
      else
        advance();
    }
    return at;
  }

  void parse_results() {
    expect("(");
    if (accept(")")) return;
    do {
      std::string output;
      if (!peek("%")) {
        output = name();
        expect("=");
      }
      Value* v = use();
      graph_.add_output(output.empty() ? v->name : output, v);
    } while (accept(","));
    expect(")");
  }

  void parse_node(Region& home, int depth) {
    std::vector<std::string> outputs;
    if (peek("%")) {
      do outputs.push_back(new_name());
      while (accept(","));
      expect("=");
    }
    const size_t at = start();
    std::string op = identifier("an operator");
    expect("(");
    std::vector<Value*> inputs;
    if (!peek(")")) {
      do inputs.push_back(accept_word("_") ? nullptr : use());
      while (accept(","));
    }
    expect(")");
    Attributes attributes;
    if (peek("{") && !peek_region()) attributes = parse_attributes();
    std::vector<Region> regions;
    while (peek_region()) regions.push_back(parse_region(depth + 1));
    std::vector<Type> types;
    if (accept(":")) {
      do types.push_back(type());
      while (accept(","));
    }
    if (types.size() != outputs.size())
      fail_at(at, op + " defines " + std::to_string(outputs.size()) + " values, but " + std::to_string(types.size()) +
                      " types are written behind it");
    Location location = accept_word("loc") ? parse_location() : Location{};
    Node* n = graph_.create(std::move(op), std::move(inputs), std::move(attributes), std::move(types),
                            std::move(location), &home);
    n->regions = std::move(regions);
    for (size_t i = 0; i < outputs.size(); ++i) {
      n->outputs[i]->name = outputs[i];
      define(outputs[i], n->output(i));
    }
  }

  /// "{ (" begins a region, "{ name" attributes.
  bool peek_region() {
    const size_t at = position();
    const bool yes = accept("{") && peek("(");
    go_to(at);
    return yes;
  }

  Region parse_region(int depth) {
    if (depth > text::kMaxNesting) fail("regions are nested more than " + std::to_string(text::kMaxNesting) + " deep");
    Region region;
    expect("{");
    expect("(");
    const size_t scope = visible_.size();
    parse_params(region);
    expect(")");
    while (!accept_word("yield")) parse_node(region, depth);
    if (!peek("}")) {
      do region.results.push_back(use());
      while (accept(","));
    }
    expect("}");
    for (; visible_.size() > scope; visible_.pop_back()) values_[visible_.back()] = nullptr;
    return region;
  }

  // ---- values

  std::string new_name() {
    expect("%");
    return name();
  }
  void define(const std::string& n, Value* v) {
    if (!values_.emplace(n, v).second) fail("value %" + n + " is defined twice");
    graph_.fresh_name(n);  // taken from now on
    visible_.push_back(n);
  }
  Value* use() {
    const size_t at = start();
    const std::string n = new_name();
    auto it = values_.find(n);
    if (it == values_.end()) fail_at(at, "value %" + n + " is used but not defined above");
    if (!it->second) fail_at(at, "value %" + n + " is not visible outside of its region");
    return it->second;
  }

  // ---- types

  Dim dim() {
    const size_t at = start();
    int depth = 0;
    while (!at_end()) {
      const char c = front();
      if (depth == 0 && (c == ',' || c == ']' || c == ';')) break;
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
      advance();
    }
    const std::string_view written = between(at, position());
    const std::optional<Dim> d = Dim::parse(trim(written));
    if (!d) fail_at(at, "expected a size, like 3, N or 2*N+1, found '" + clip(written) + "'");
    return *d;
  }

  Shape shape() {
    Shape s;
    expect("[");
    if (accept("]")) return s;
    do {
      if (s.size() == kMaxRank) fail("a shape has more than " + std::to_string(kMaxRank) + " dimensions");
      s.push_back(dim());
    } while (accept(","));
    if (!peek(";")) expect("]");
    return s;
  }

  Type type() {
    const size_t at = start();
    const std::string dtype_name = identifier("an element type");
    const std::optional<DType> dtype = dtype_from_name(dtype_name);
    if (!dtype) fail_at(at, "there is no element type '" + clip(dtype_name) + "'");
    Type t{*dtype, shape(), {}};
    if (accept(";")) {
      const size_t tag_at = start();
      const std::string tag = identifier("a layout");
      const std::optional<Layout> layout = Layout::parse(tag, t.rank());
      if (!layout) fail_at(tag_at, "'" + clip(tag) + "' is no layout of a tensor of rank " + std::to_string(t.rank()));
      t.layout = *layout;
      expect("]");
    }
    return t;
  }

  // ---- attributes

  Attributes parse_attributes() {
    Attributes all;
    expect("{");
    if (accept("}")) return all;
    do {
      const size_t at = start();
      std::string key = name();
      expect("=");
      if (!all.emplace(key, attribute()).second) fail_at(at, "attribute " + clip(key) + " is given twice");
    } while (accept(","));
    expect("}");
    return all;
  }

  Attribute attribute() {
    if (peek("\"")) return string();
    if (peek("[")) return any_list();
    const size_t at = start();
    if (at_number() || front_is_word("nan") || front_is_word("inf")) return number();
    const std::string w = identifier("an attribute's value");
    if (w == "shape") return shape_only();
    if (w == "dense") return tensor();
    if (w == "reals") return empty_list(std::vector<double>());
    if (w == "strings") return empty_list(std::vector<std::string>());
    if (w == "layout") {
      expect("(");
      const std::string tag = string();
      size_t rank = 0;
      while (rank < tag.size() && !(tag[rank] >= '0' && tag[rank] <= '9')) ++rank;
      const std::optional<Layout> l = Layout::parse(tag, static_cast<int>(rank));
      if (!l) fail_at(at, "'" + clip(tag) + "' is no layout");
      expect(")");
      return *l;
    }
    if (const std::optional<DType> d = dtype_from_name(w)) return *d;
    fail_at(at, "expected an attribute's value, found '" + clip(w) + "'");
  }

  Shape shape_only() {
    Shape s = shape();
    if (peek(";")) expect("]");
    return s;
  }
  template <class T>
  T empty_list(T empty) {
    expect("[");
    expect("]");
    return empty;
  }

  Attribute number() {
    const size_t at = start();
    if (accept_word("nan")) return std::numeric_limits<double>::quiet_NaN();
    if (accept_word("inf")) return std::numeric_limits<double>::infinity();
    const std::string_view t = number_text();
    if (t.find_first_not_of("-0123456789") == std::string_view::npos) return to_int<int64_t>(at, t);
    return to_real(at, t);
  }

  bool front_is_word(std::string_view w) {
    const size_t at = position();
    const bool yes = accept_word(w);
    go_to(at);
    return yes;
  }

  template <class T>
  T to_int(size_t at, std::string_view t) {
    T v{};
    const auto [end, error] = std::from_chars(t.data(), t.data() + t.size(), v);
    if (error != std::errc{} || end != t.data() + t.size())
      fail_at(at, "'" + clip(t) + "' is no integer of " + std::to_string(8 * sizeof(T)) + " bits");
    return v;
  }
  double to_real(size_t at, std::string_view t) {
    double v = 0;
    const auto [end, error] = std::from_chars(t.data(), t.data() + t.size(), v);
    if (error != std::errc{} || end != t.data() + t.size()) fail_at(at, "'" + clip(t) + "' is no number of 64 bits");
    return v;
  }

  Attribute any_list() {
    expect("[");
    std::vector<int64_t> ints;
    if (accept("]")) return ints;
    if (peek("\"")) {
      std::vector<std::string> strings;
      do strings.push_back(string());
      while (accept(","));
      expect("]");
      return strings;
    }
    std::vector<double> reals;
    const size_t at = start();
    do {
      const Attribute a = number();
      if (const auto* i = std::get_if<int64_t>(&a))
        ints.push_back(*i);
      else
        reals.push_back(std::get<double>(a));
    } while (accept(","));
    expect("]");
    if (!ints.empty() && !reals.empty()) fail_at(at, "a list holds integers or reals, not both");
    if (!ints.empty()) return ints;
    return reals;
  }

  // ---- constants

  Tensor tensor() {
    expect("<");
    const size_t at = start();
    const Type t = type();
    const std::optional<int64_t> bytes = t.bytes().as_const();
    if (!bytes || *bytes < 0 || !is_static(t.shape)) fail_at(at, "a constant's type must have known sizes");
    for (const Dim& d : t.shape)
      if (d.value() < 0) fail_at(at, "a constant's type must have known sizes");
    expect(",");
    std::vector<uint8_t> data;
    const size_t data_at = start();
    if (peek("#")) fail("this constant was printed without its values; print the graph in full to read it back");
    if (accept("0x"))
      data = hex(*bytes);
    else
      data = elements(t.dtype, *bytes);
    if (static_cast<int64_t>(data.size()) != *bytes)
      fail_at(data_at, "a constant of type " + t.str() + " has " + std::to_string(*bytes / size_of(t.dtype)) +
                           " elements in memory, given are " + std::to_string(data.size() / size_t(size_of(t.dtype))));
    expect(">");
    return Tensor::from_bytes(t, std::move(data));
  }

  std::vector<uint8_t> hex(int64_t bytes) {
    std::vector<uint8_t> data;
    const auto digit = [&](char c) {
      return c >= '0' && c <= '9'   ? c - '0'
             : c >= 'a' && c <= 'f' ? c - 'a' + 10
             : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                    : -1;
    };
    while (!at_end() && digit(front()) >= 0) {
      const int high = digit(front());
      advance();
      const int low = at_end() ? -1 : digit(front());
      if (low < 0) fail("a byte needs two hexadecimal digits");
      advance();
      if (static_cast<int64_t>(data.size()) == bytes) fail("more bytes than the constant's type takes");
      data.push_back(static_cast<uint8_t>(high << 4 | low));
    }
    return data;
  }

  std::vector<uint8_t> elements(DType dtype, int64_t bytes) {
    std::vector<uint8_t> data;
    expect("[");
    if (accept("]")) return data;
    do {
      if (static_cast<int64_t>(data.size()) >= bytes) fail("more elements than the constant's type takes");
      const auto put = [&](const auto& v) {
        const auto* p = reinterpret_cast<const uint8_t*>(&v);
        data.insert(data.end(), p, p + size_of(dtype));
      };
      const size_t at = start();
      if (dtype == DType::u64) {
        put(to_int<uint64_t>(at, number_text()));
      } else if (dtype == DType::boolean && accept_word("true")) {
        put(uint8_t{1});
      } else if (dtype == DType::boolean && accept_word("false")) {
        put(uint8_t{0});
      } else if (is_float(dtype)) {
        const Attribute a = number();
        const auto* i = std::get_if<int64_t>(&a);
        const Tensor one = Tensor::scalar(dtype, i ? static_cast<double>(*i) : std::get<double>(a));
        data.insert(data.end(), one.raw(), one.raw() + size_of(dtype));
      } else {
        const auto v = to_int<int64_t>(at, number_text());
        const int bits = 8 * size_of(dtype);
        const int64_t high = bits == 64 ? std::numeric_limits<int64_t>::max()
                                        : (int64_t{1} << (is_signed_int(dtype) ? bits - 1 : bits)) - 1;
        const int64_t low = is_signed_int(dtype) ? -high - 1 : 0;
        if (v < low || v > high)
          fail_at(at, std::to_string(v) + " is out of the range of " + std::string(name_of(dtype)));
        put(v);  // little endian: the low bytes come first
      }
    } while (accept(","));
    expect("]");
    return data;
  }

  // ---- locations

  Location parse_location() {
    Location l;
    expect("(");
    if (peek("\"")) l.file = string();
    if (accept(":")) {
      const size_t at = start();
      l.line = to_int<int32_t>(at, number_text());
    }
    if (accept_word("in")) l.function = string();
    if (accept_word("module")) l.module_path = string();
    if (peek("'")) l.variable = string('\'');
    expect(")");
    return l;
  }

  static constexpr size_t kMaxRank = 26;  ///< letters of a layout's tag
  Graph graph_;
  std::map<std::string, Value*, std::less<>> values_;  ///< null: defined in a region that has ended
  std::vector<std::string> visible_;                   ///< names in order of definition, of the open regions
};

}  // namespace

Graph parse(std::string_view text, std::string source) {
  Parser parser(text, source);
  try {
    return parser.run();
  } catch (const Error& e) {
    // Sizes whose arithmetic overflows are found far below the parser.
    if (e.status() == CUVIL_MODEL_ERROR || e.status() == CUVIL_TARGET_ERROR) throw;
    throw_model_error(parser.where() + e.what());
  }
}

}  // namespace cuvil::ir
