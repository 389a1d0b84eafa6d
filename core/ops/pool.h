// What MaxPool2D and AveragePool2D share.
#pragma once

#include "core/ops/define.h"
#include "core/ops/loops.h"
#include "core/ops/window.h"

namespace cuvil::ops {

OpDef pooling(std::string_view name, std::string_view doc, std::vector<DType> dtypes);
Window pool_window(const ir::Node& node);
inline bool ceil_mode(const ir::Node& node) { return node.attr<int64_t>("ceil_mode") != 0; }
std::vector<Sample> pool_samples(std::vector<double> expected);

}  // namespace cuvil::ops
