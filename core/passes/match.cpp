#include "core/passes/match.h"

#include <algorithm>
#include <cmath>

#include "core/passes/rewrite.h"

namespace cuvil::passes {

ir::Node* producer(const ir::Value* value, std::string_view op) {
  return value && value->producer && value->producer->op == op ? value->producer : nullptr;
}

bool Product::take(const ir::Value* value) {
  const auto it = std::find(values.begin(), values.end(), value);
  if (it == values.end()) return false;
  values.erase(it);
  return true;
}

Product product_of(ir::Value* value, int depth) {
  if (const std::optional<double> number = scalar_of(value)) return {*number, {}};
  const auto both = [&](ir::Value* a, ir::Value* b) {
    Product p = product_of(a, depth - 1);
    const Product q = product_of(b, depth - 1);
    p.factor *= q.factor;
    p.values.insert(p.values.end(), q.values.begin(), q.values.end());
    return p;
  };
  if (depth > 0) {
    if (const ir::Node* n = producer(value, "Mul")) return both(n->input(0), n->input(1));
    if (const ir::Node* n = producer(value, "Div"))
      if (const std::optional<double> by = scalar_of(n->input(1)); by && *by != 0) {
        Product p = product_of(n->input(0), depth - 1);
        p.factor /= *by;
        return p;
      }
    if (const ir::Node* n = producer(value, "Pow"))
      if (const std::optional<double> to = scalar_of(n->input(1)); to == 2.0 || to == 3.0) {
        Product p = both(n->input(0), n->input(0));
        if (to == 3.0) {
          const Product q = product_of(n->input(0), depth - 1);
          p.factor *= q.factor;
          p.values.insert(p.values.end(), q.values.begin(), q.values.end());
        }
        return p;
      }
  }
  return {1, {value}};
}

std::optional<std::pair<ir::Value*, double>> sum_with_number(const ir::Value* value) {
  const ir::Node* add = producer(value, "Add");
  if (!add) return std::nullopt;
  for (size_t i = 0; i < 2; ++i)
    if (const std::optional<double> number = scalar_of(add->input(i))) return std::pair(add->input(1 - i), *number);
  return std::nullopt;
}

bool is_about(double value, double wanted) { return std::fabs(value - wanted) <= 1e-4 * std::fabs(wanted); }

}  // namespace cuvil::passes
