// What loops are made of, beside jumps and copies. Numbers are i64 of one element, conditions are bool of one element.
//   LoopTest  goes_on = counter < trips and condition
//   LoopNext  counter = counter + 1
//   PutSlice  stacked[counter] = value
//   SetSymbol the symbol's value is the counter
#include <cstring>

#include "runtime/dtypes.h"
#include "runtime/error.h"
#include "runtime/host_ops/host_op.h"

namespace cuvil::runtime {

namespace {

bool is_number(const HostTensor& t) { return t.dtype == CUVIL_I64 && t.ndim == 0; }
bool is_bool(const HostTensor& t) { return t.dtype == CUVIL_BOOL && t.ndim == 0; }
int64_t number(const HostTensor& t) { return *static_cast<const int64_t*>(t.data); }

const char* check_test(const HostTensor* inputs, const HostTensor* outputs) {
  const bool fits = is_number(inputs[0]) && is_number(inputs[1]) && is_bool(inputs[2]) && is_bool(outputs[0]);
  return fits ? nullptr : "operands are not two numbers, a condition and a condition";
}
cuvil_status run_test(const HostCall& call) {
  const bool condition = *static_cast<const uint8_t*>(call.inputs[2].data) != 0;
  *static_cast<uint8_t*>(call.outputs[0].data) = number(call.inputs[0]) < number(call.inputs[1]) && condition;
  return CUVIL_OK;
}

const char* check_next(const HostTensor* inputs, const HostTensor* outputs) {
  return is_number(inputs[0]) && is_number(outputs[0]) ? nullptr : "operands are not numbers";
}
cuvil_status run_next(const HostCall& call) {
  int64_t next;
  if (__builtin_add_overflow(number(call.inputs[0]), 1, &next))
    return fail(CUVIL_INTERNAL_ERROR, "the number of a loop's iteration does not fit in 64 bits");
  *static_cast<int64_t*>(call.outputs[0].data) = next;
  return CUVIL_OK;
}

const char* check_put(const HostTensor* inputs, const HostTensor* outputs) {
  if (!is_number(inputs[1])) return "the index is no number";
  if (inputs[0].dtype != outputs[0].dtype) return "value and result differ in element type";
  return inputs[0].ndim + 1 == outputs[0].ndim ? nullptr : "the result has not one dimension more than the value";
}
cuvil_status run_put(const HostCall& call) {
  const HostTensor& value = call.inputs[0];
  const HostTensor& stacked = call.outputs[0];
  const int64_t at = number(call.inputs[1]), n = value.elements();
  int64_t slice = 1;
  for (uint32_t i = 1; i < stacked.ndim; ++i) slice *= stacked.dims[i];
  if (at < 0 || at >= stacked.dims[0] || slice != n)
    return fail(CUVIL_INTERNAL_ERROR, "PutSlice: %lld elements do not fit at %lld of [%lld] slices of %lld",
                static_cast<long long>(n), static_cast<long long>(at), static_cast<long long>(stacked.dims[0]),
                static_cast<long long>(slice));
  const int64_t bytes = n * dtype_bytes(value.dtype);
  if (bytes > 0) memcpy(static_cast<char*>(stacked.data) + at * bytes, value.data, static_cast<size_t>(bytes));
  return CUVIL_OK;
}

const char* check_set(const HostTensor* inputs, const HostTensor*) {
  return is_number(inputs[0]) ? nullptr : "the operand is no number";
}
cuvil_status run_set(const HostCall& call) {
  call.symbols[0] = number(call.inputs[0]);
  if (call.symbols[0] < 0 || call.symbols[0] > call.limits[0])
    return fail(CUVIL_INTERNAL_ERROR, "SetSymbol: %lld is above the planned %lld",
                static_cast<long long>(call.symbols[0]), static_cast<long long>(call.limits[0]));
  return CUVIL_OK;
}

}  // namespace

const HostOperator kLoopTest = {"LoopTest", 3, 1, 0, check_test, run_test};
const HostOperator kLoopNext = {"LoopNext", 1, 1, 0, check_next, run_next};
const HostOperator kPutSlice = {"PutSlice", 2, 1, 0, check_put, run_put};
const HostOperator kSetSymbol = {"SetSymbol", 1, 0, 1, check_set, run_set};

}  // namespace cuvil::runtime
