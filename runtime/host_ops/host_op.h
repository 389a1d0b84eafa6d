// Host operators: what is no loop nest. Each is one function, registered by name in list.cpp.
#pragma once

#include <cstdint>

#include "core/abi/cvl_generated.h"
#include "cuvil/runtime.h"

namespace cuvil::runtime {

/// A row-major tensor. Of an output whose shape depends on data, `dims` are upper bounds.
struct HostTensor {
  void* data;
  cuvil_dtype dtype;
  uint32_t ndim;
  const int64_t* dims;
  int64_t elements() const {
    int64_t n = 1;
    for (uint32_t i = 0; i < ndim; ++i) n *= dims[i];
    return n;
  }
};

struct HostCall {
  const HostTensor* inputs;
  const HostTensor* outputs;
  const cvl::Step* step;  ///< for its attributes
  int64_t* symbols;       ///< out: values of the symbols that the operator sets
  const int64_t* limits;  ///< their largest values
};

struct HostOperator {
  const char* name;
  uint32_t inputs, outputs, symbols;
  /// Null, or why these operands (ranks and element types; dims are not set) do not fit. Called when a program is
  /// loaded.
  const char* (*check)(const HostTensor* inputs, const HostTensor* outputs);
  cuvil_status (*run)(const HostCall& call);
};

/// Null if there is none of that name.
const HostOperator* find_host_operator(const char* name);

extern const HostOperator kCopy;
extern const HostOperator kLoopNext;
extern const HostOperator kLoopTest;
extern const HostOperator kNonMaxSuppression;
extern const HostOperator kNonZero;
extern const HostOperator kPutSlice;
extern const HostOperator kSetSymbol;
extern const HostOperator kTopK;
extern const HostOperator kUnique;

}  // namespace cuvil::runtime
