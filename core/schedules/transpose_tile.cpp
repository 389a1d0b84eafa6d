#include "core/schedules/transpose_tile.h"

namespace cuvil::schedules {

using kernel::Expr;

std::vector<Expr> transpose_square(kernel::Builder& b, std::vector<Expr> rows) {
  const int n = static_cast<int>(rows.size());
  std::vector<int> low, high;
  for (int i = 0; i < n / 2; ++i) {
    low.insert(low.end(), {i, n + i});
    high.insert(high.end(), {n / 2 + i, n + n / 2 + i});
  }
  for (int round = 1; round < n; round *= 2) {
    std::vector<Expr> next;
    for (int i = 0; i < n / 2; ++i) {
      const Expr& x = rows[static_cast<size_t>(i)];
      const Expr& y = rows[static_cast<size_t>(i + n / 2)];
      next.push_back(b.let("t", kernel::shuffle({x, y}, low)));
      next.push_back(b.let("t", kernel::shuffle({x, y}, high)));
    }
    rows = std::move(next);
  }
  return rows;
}

}  // namespace cuvil::schedules
