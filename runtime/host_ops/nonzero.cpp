// NonZero (ONNX): the indices of the elements that are not zero, i64 [rank, count], in row-major order. Sets one
// symbol: count, at most the number of elements. A scalar counts as a vector of one element, as in ONNX Runtime.
// Source: https://onnx.ai/onnx/operators/onnx__NonZero.html
#include <cstring>

#include "runtime/dtypes.h"
#include "runtime/error.h"
#include "runtime/host_ops/host_op.h"

namespace cuvil::runtime {

namespace {

const char* check(const HostTensor* inputs, const HostTensor* outputs) {
  if (outputs[0].dtype != CUVIL_I64 || outputs[0].ndim != 2) return "the output is not i64 with 2 dimensions";
  return inputs[0].ndim <= 32 ? nullptr : "the input has too many dimensions";
}

/// Zero of any type has all bits zero but, for floats, the sign: -0 is zero, NaN is not.
bool is_nonzero(const unsigned char* element, unsigned bytes, bool is_float) {
  for (unsigned i = 0; i < bytes; ++i) {
    const unsigned char mask = is_float && i + 1 == bytes ? 0x7F : 0xFF;
    if (element[i] & mask) return true;
  }
  return false;
}

cuvil_status run(const HostCall& call) {
  const HostTensor& x = call.inputs[0];
  const HostTensor& y = call.outputs[0];
  const DTypeInfo& type = *dtype_info(x.dtype);
  const bool is_float = type.dl_code == 2 || type.dl_code == 4;
  const auto* data = static_cast<const unsigned char*>(x.data);
  const int64_t rank = x.ndim > 0 ? x.ndim : 1, n = x.elements();
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += is_nonzero(data + i * type.bytes, type.bytes, is_float);
  if (count > call.limits[0] || y.dims[0] != rank || count > y.dims[1])
    return fail(CUVIL_INTERNAL_ERROR, "NonZero: %lld elements do not fit the planned output [%lld, %lld]",
                static_cast<long long>(count), static_cast<long long>(y.dims[0]), static_cast<long long>(y.dims[1]));
  auto* out = static_cast<int64_t*>(y.data);
  int64_t index[32] = {};
  for (int64_t i = 0, k = 0; i < n; ++i) {
    if (is_nonzero(data + i * type.bytes, type.bytes, is_float)) {
      for (int64_t axis = 0; axis < rank; ++axis) out[axis * count + k] = index[axis];
      ++k;
    }
    for (int64_t axis = x.ndim; axis-- > 0;) {
      if (++index[axis] < x.dims[axis]) break;
      index[axis] = 0;
    }
  }
  call.symbols[0] = count;
  return CUVIL_OK;
}

}  // namespace

const HostOperator kNonZero = {"NonZero", 1, 1, 1, check, run};

}  // namespace cuvil::runtime
