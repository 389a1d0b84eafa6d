// A graph shared between Python objects: nodes and values keep it alive.
#pragma once

#include <memory>

#include "core/ir/graph.h"

namespace cuvil::python {

struct PyGraph {
  std::shared_ptr<ir::Graph> graph;
};

}  // namespace cuvil::python
