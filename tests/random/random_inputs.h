// Seeded inputs for a graph, and the comparison of two graphs' results.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/ir/graph.h"

namespace cuvil::test {

/// A deterministic generator (splitmix64), the same everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  /// low..high, both included.
  int64_t in(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
  }
  double real(double low, double high) { return low + (high - low) * static_cast<double>(next() >> 11) * 0x1p-53; }
  bool chance(double p) { return real(0, 1) < p; }

 private:
  uint64_t state_;
};

/// A tensor of floats in [-2, 2], integers in [-4, 4], unsigned ones and bools in [0, 8] and [0, 1].
ir::Tensor random_tensor(const ir::Type& type, Random& random);

inline constexpr int64_t kLeastExtent = 4;
/// One tensor per input of the graph. Symbol N, a batch, gets a size in [1, 3], others at least kLeastExtent.
std::vector<ir::Tensor> random_inputs(const ir::Graph& graph, uint64_t seed);

/// The first difference between two lists of results in words; nothing if they agree: integers to the bit, floats to
/// `tolerance`, relative and absolute.
std::optional<std::string> difference(const std::vector<ir::Tensor>& expected, const std::vector<ir::Tensor>& actual,
                                      double tolerance);

/// The inputs with each float changed by up to 2^-21 of itself: what rounding could have made of them. A graph whose
/// results move much then is ill-conditioned (a normalisation of two nearly equal values), and no sign of an error.
std::vector<ir::Tensor> perturbed(const std::vector<ir::Tensor>& inputs, uint64_t seed);
/// Largest |a - b| / (1 + |a|) over the floats of all results.
double distance(const std::vector<ir::Tensor>& a, const std::vector<ir::Tensor>& b);

}  // namespace cuvil::test
