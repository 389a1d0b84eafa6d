// Copy: the bytes of one tensor to another, for outputs that are an input, a constant or another output.
#include <cstring>

#include "runtime/dtypes.h"
#include "runtime/error.h"
#include "runtime/host_ops/host_op.h"

namespace cuvil::runtime {

namespace {

const char* check(const HostTensor* inputs, const HostTensor* outputs) {
  return inputs[0].dtype == outputs[0].dtype ? nullptr : "input and output differ in element type";
}

cuvil_status run(const HostCall& call) {
  const int64_t n = call.inputs[0].elements();
  if (n != call.outputs[0].elements())
    return fail(CUVIL_SHAPE_ERROR, "Copy: %lld elements into %lld", static_cast<long long>(n),
                static_cast<long long>(call.outputs[0].elements()));
  if (n > 0)
    memmove(call.outputs[0].data, call.inputs[0].data, static_cast<size_t>(n * dtype_bytes(call.inputs[0].dtype)));
  return CUVIL_OK;
}

}  // namespace

const HostOperator kCopy = {"Copy", 1, 1, 0, check, run};

}  // namespace cuvil::runtime
