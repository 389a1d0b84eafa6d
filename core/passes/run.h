// Text to graph to named passes: what cuvil-opt and the golden tests do.
#pragma once

#include <string>
#include <string_view>

#include "core/passes/pass.h"

namespace cuvil::passes {

/// Parses, writes the defaults of absent attributes, and checks structure and every operator's rules.
ir::Graph read(std::string_view text, std::string source);

/// Runs passes by name ("a,b"; "" = none; "all" = the pipeline). Throws ModelError that lists the names for an unknown
/// one. With `verify_each` the graph is checked after every pass.
ir::Graph run_named(ir::Graph graph, std::string_view names, const PassContext& context, bool verify_each);

}  // namespace cuvil::passes
