// Random graphs: the same seed gives the same graph on every machine.
#pragma once

#include <cstdint>

#include "core/ir/graph.h"

namespace cuvil::test {

struct RandomGraphOptions {
  int nodes = 12;
  bool symbolic = false;  ///< batch and image sizes are symbols
};

/// Images through convolutions, pooling and concatenation; matrices through products, softmax and normalisation;
/// elementwise operators with broadcasting everywhere, reductions, transposes, reshapes. Sizes are small. Operators
/// whose results jump (rounding, comparisons) are left out, so that results can be compared with a tolerance.
ir::Graph random_graph(uint64_t seed, const RandomGraphOptions& options = {});

}  // namespace cuvil::test
