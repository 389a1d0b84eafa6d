// Taking apart expressions that exporters spell out in primitive operators. Each rule names the operators of its
// pattern: that is what a pattern is.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/ir/graph.h"

namespace cuvil::passes {

/// The producer of `value` if it is an `op`, else null.
ir::Node* producer(const ir::Value* value, std::string_view op);

/// A product of values to integer powers, times a number.
struct Product {
  double factor = 1;
  std::vector<ir::Value*> values;  ///< with repetition
  /// Removes the first occurrence; false if there is none.
  bool take(const ir::Value* value);
};
/// Looks through Mul, Div by numbers, and Pow to 2 and 3, at most `depth` nodes deep.
Product product_of(ir::Value* value, int depth = 6);

/// a in `value` = a + number, with the number.
std::optional<std::pair<ir::Value*, double>> sum_with_number(const ir::Value* value);

/// Equal up to the rounding of an f32 constant.
bool is_about(double value, double wanted);

}  // namespace cuvil::passes
