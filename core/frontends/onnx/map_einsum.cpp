// Einsum: diagonals, then one operand after the other contracted into the rest by matrix products, then what is left
// summed and put in order.
#include <algorithm>
#include <cctype>

#include "core/frontends/onnx/compose.h"

namespace cuvil::frontends::onnx {
namespace {

using V = Compose::V;
using Labels = std::vector<int>;  ///< per axis: a letter's code, or a negative number for an axis of an ellipsis

bool has(const Labels& all, int label) { return std::find(all.begin(), all.end(), label) != all.end(); }
int64_t position(const Labels& all, int label) { return std::find(all.begin(), all.end(), label) - all.begin(); }

struct Operand {
  V value;
  Labels labels;
};

class Einsum {
 public:
  Einsum(OpContext& c, const Compose& m) : c_(c), m_(m) {}

  V run() {
    parse();
    Operand all = diagonal(operands_[0]);
    for (size_t i = 1; i < operands_.size(); ++i) all = contract(all, diagonal(operands_[i]), i);
    all = keep(all, [&](int label) { return has(result_, label); });
    std::vector<int64_t> perm;
    for (int label : result_) perm.push_back(position(all.labels, label));
    return m_.transpose(all.value, perm);
  }

 private:
  [[noreturn]] void malformed(const std::string& what) { c_.malformed("Einsum '" + equation_ + "': " + what); }

  void parse() {
    equation_ = c_.attr_string("equation", "");
    std::string text;
    for (char ch : equation_)
      if (!std::isspace(static_cast<unsigned char>(ch))) text += ch;
    const size_t arrow = text.find("->");
    const std::string left = text.substr(0, arrow);
    std::vector<std::string> terms{""};
    for (char ch : left) {
      if (ch == ',')
        terms.emplace_back();
      else
        terms.back() += ch;
    }
    if (terms.size() != c_.num_inputs())
      malformed("it has " + std::to_string(terms.size()) + " terms, the node " + std::to_string(c_.num_inputs()) +
                " inputs");
    for (size_t i = 0; i < terms.size(); ++i) operands_.push_back({c_.in(i), labels_of(terms[i], c_.rank(i))});
    if (arrow != std::string::npos) {
      result_ = labels_of(text.substr(arrow + 2), -1);
      for (size_t i = 0; i < result_.size(); ++i)
        if (std::count(result_.begin(), result_.end(), result_[i]) != 1) malformed("a result's label stands twice");
    } else {
      result_ = implicit_result();
    }
    for (int label : result_) {
      const auto knows = [&](const Operand& o) { return has(o.labels, label); };
      if (std::none_of(operands_.begin(), operands_.end(), knows)) malformed("a result's label is in no term");
    }
  }

  /// The axes of a term; an ellipsis stands for what the rank leaves (rank -1: the most that any term's had).
  Labels labels_of(const std::string& term, int rank) {
    Labels labels;
    bool dots = false;
    const auto letters = std::count_if(term.begin(), term.end(), [](unsigned char ch) { return std::isalpha(ch); });
    for (size_t i = 0; i < term.size(); ++i) {
      if (std::isalpha(static_cast<unsigned char>(term[i]))) {
        labels.push_back(term[i]);
        continue;
      }
      if (term.compare(i, 3, "...") != 0 || dots) malformed("'" + term + "' is no term");
      dots = true;
      i += 2;
      const int axes = rank < 0 ? ellipsis_ : rank - static_cast<int>(letters);
      if (axes < 0) malformed("'" + term + "' has more labels than its operand axes");
      ellipsis_ = std::max(ellipsis_, axes);
      for (int a = axes; a >= 1; --a) labels.push_back(-a);  // aligned at the right
    }
    if (rank >= 0 && static_cast<int>(labels.size()) != rank)
      malformed("'" + term + "' does not fit an operand of rank " + std::to_string(rank));
    return labels;
  }

  /// Without an arrow: the ellipsis, then all letters that stand once, in alphabetical order.
  Labels implicit_result() {
    Labels all, result;
    for (const Operand& o : operands_) all.insert(all.end(), o.labels.begin(), o.labels.end());
    for (int a = ellipsis_; a >= 1; --a) result.push_back(-a);
    std::sort(all.begin(), all.end());
    for (int label : all)
      if (label > 0 && std::count(all.begin(), all.end(), label) == 1) result.push_back(label);
    return result;
  }

  /// A label that stands twice in a term means the diagonal of these axes: every (n + 1)th element of n * n.
  Operand diagonal(Operand o) {
    for (size_t i = 0; i < o.labels.size(); ++i) {
      for (size_t j = i + 1; j < o.labels.size(); ++j) {
        if (o.labels[i] != o.labels[j]) continue;
        const Dim n = o.value->type.shape[i];
        if (n != o.value->type.shape[j]) malformed("a diagonal of axes of different extents");
        if (!n.is_const()) c_.unsupported("Einsum of a diagonal of symbolic extent");
        std::vector<int64_t> perm;
        Shape flat;
        Labels labels;
        for (size_t a = 0; a < o.labels.size(); ++a) {
          if (a == i || a == j) continue;
          perm.push_back(static_cast<int64_t>(a));
          flat.push_back(o.value->type.shape[a]);
          labels.push_back(o.labels[a]);
        }
        perm.push_back(static_cast<int64_t>(i));
        perm.push_back(static_cast<int64_t>(j));
        labels.push_back(o.labels[i]);
        flat.push_back(n * n);
        V v = m_.reshape(m_.transpose(o.value, perm), flat);
        v = m_.slice(v, static_cast<int64_t>(flat.size()) - 1, Dim(0), n, n.value() + 1);
        return diagonal({v, labels});
      }
    }
    return o;
  }

  /// Sums over the labels that are not wanted.
  template <class F>
  Operand keep(const Operand& o, F wanted) {
    std::vector<int64_t> axes;
    Labels labels;
    for (size_t a = 0; a < o.labels.size(); ++a) {
      if (wanted(o.labels[a]))
        labels.push_back(o.labels[a]);
      else
        axes.push_back(static_cast<int64_t>(a));
    }
    if (axes.empty()) return o;
    return {m_.reduce("ReduceSum", o.value, axes, false), labels};
  }

  /// An axis of extent 1 beside a longer one of the other operand is broadcast: it can as well be absent.
  void drop_ones(Operand& o, const Operand& other) {
    for (size_t a = 0; a < o.labels.size();) {
      const int label = o.labels[a];
      const bool one = o.value->type.shape[a] == Dim(1) && has(other.labels, label) &&
                       other.value->type.shape[static_cast<size_t>(position(other.labels, label))] != Dim(1);
      if (!one) {
        ++a;
        continue;
      }
      o.value = m_.squeeze(o.value, static_cast<int64_t>(a));
      o.labels.erase(o.labels.begin() + static_cast<int64_t>(a));
    }
  }

  /// The operand with axes in the order of groups of labels, each group as one axis.
  V grouped(const Operand& o, const std::vector<Labels>& groups) {
    std::vector<int64_t> perm;
    Shape shape;
    for (const Labels& group : groups) {
      Dim size(1);
      for (int label : group) {
        perm.push_back(position(o.labels, label));
        size = size * o.value->type.shape[static_cast<size_t>(perm.back())];
      }
      shape.push_back(size);
    }
    return m_.reshape(m_.transpose(o.value, perm), shape);
  }

  Operand contract(Operand a, Operand b, size_t index) {
    const auto later = [&](int label) {
      bool yes = has(result_, label);
      for (size_t i = index + 1; i < operands_.size(); ++i) yes = yes || has(operands_[i].labels, label);
      return yes;
    };
    drop_ones(a, b);
    drop_ones(b, a);
    a = keep(a, [&](int label) { return later(label) || has(b.labels, label); });
    b = keep(b, [&](int label) { return later(label) || has(a.labels, label); });
    Labels batch, summed, rows, columns;
    for (int label : a.labels) (!has(b.labels, label) ? rows : later(label) ? batch : summed).push_back(label);
    for (int label : b.labels)
      if (!has(a.labels, label)) columns.push_back(label);
    Shape shape;
    Labels labels;
    for (const auto& [from, group] : {std::pair(&a, &batch), {&a, &rows}, {&b, &columns}}) {
      for (int label : *group) {
        labels.push_back(label);
        shape.push_back(from->value->type.shape[static_cast<size_t>(position(from->labels, label))]);
      }
    }
    V x = grouped(a, {batch, rows, summed}), y = grouped(b, {batch, summed, columns});
    return {m_.reshape(m_.matmul(x, y), shape), labels};
  }

  OpContext& c_;
  const Compose& m_;
  std::string equation_;
  std::vector<Operand> operands_;
  Labels result_;
  int ellipsis_ = 0;  ///< the most axes that one stands for
};

void einsum(OpContext& c) {
  const Compose m(c);
  if (c.num_inputs() == 0) c.malformed("Einsum without inputs");
  c.out(0, m.op("Identity", {Einsum(c, m).run()}));
}

const Mapping kMappings[] = {{"Einsum", einsum}};

}  // namespace

std::span<const Mapping> einsum_mappings() { return kMappings; }

}  // namespace cuvil::frontends::onnx
