// Runs a model of the runtime on CIR tensors.
#pragma once

#include <vector>

#include "core/ir/tensor.h"
#include "cuvil/runtime.h"

namespace cuvil::test {

/// Results of one run in a context of its own; throws Error with the runtime's status and message.
std::vector<ir::Tensor> run_model(cuvil_model* model, const std::vector<ir::Tensor>& inputs, int threads);

}  // namespace cuvil::test
