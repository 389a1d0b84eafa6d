// The list of host operators: a new one is a file in this folder and a line here.
#include <cstring>

#include "runtime/host_ops/host_op.h"

namespace cuvil::runtime {

namespace {
const HostOperator* const kOperators[] = {
    &kCopy, &kLoopNext, &kLoopTest, &kNonMaxSuppression, &kNonZero, &kPutSlice, &kSetSymbol, &kTopK, &kUnique};
}

const HostOperator* find_host_operator(const char* name) {
  for (const HostOperator* op : kOperators)
    if (strcmp(op->name, name) == 0) return op;
  return nullptr;
}

}  // namespace cuvil::runtime
