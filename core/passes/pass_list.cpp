// The passes in pipeline order. Adding one is its file, and its line here.
#include "core/passes/pass.h"

// X(function, what it does)
#define CUVIL_PASSES(X)                                                                               \
  X(canonicalise, "algebraic folds of single operators, constants on the right of commutative ones")  \
  X(fold_constants, "nodes whose inputs are constants become constants")                              \
  X(simplify_control_flow, "If with a known condition becomes its branch; constants go into regions") \
  X(recognise_gelu, "Gelu spelled out with Erf or Tanh becomes one node")                             \
  X(recognise_layer_norm, "layer normalization spelled out with means becomes one node")              \
  X(fold_batch_norm, "scales and shifts of channels behind a contraction go into its weights")        \
  X(eliminate_common_subexpressions, "equal nodes are computed once")                                 \
  X(eliminate_dead_code, "what nobody uses is removed")                                               \
  X(assign_layouts, "images flow in blocks of channels; reorders only at borders")                    \
  X(fuse_epilogues, "elementwise nodes join the operator whose result they finish")                   \
  X(fuse_elementwise, "clusters of elementwise nodes become one kernel")

namespace cuvil::passes {

#define X(function, doc) ir::Graph function(ir::Graph, const PassContext&);
CUVIL_PASSES(X)
#undef X

std::span<const Pass> all() {
  static constexpr Pass kPasses[] = {
#define X(function, doc) {#function, doc, function},
      CUVIL_PASSES(X)
#undef X
  };
  return kPasses;
}

const Pass* find(std::string_view name) {
  for (const Pass& p : all())
    if (p.name == name) return &p;
  return nullptr;
}

}  // namespace cuvil::passes
