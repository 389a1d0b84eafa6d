// TopK (ONNX): the k largest (or smallest) elements along an axis in order, and their indices; of equal ones the first
// index comes first. NaN counts as the largest. One heap of k indices per row.
// Source: https://onnx.ai/onnx/operators/onnx__TopK.html
#include "runtime/dtypes.h"
#include "runtime/error.h"
#include "runtime/host_ops/attributes.h"
#include "runtime/host_ops/element.h"
#include "runtime/host_ops/host_op.h"

namespace cuvil::runtime {

namespace {

const char* check(const HostTensor* inputs, const HostTensor* outputs) {
  if (outputs[0].dtype != inputs[0].dtype || outputs[1].dtype != CUVIL_I64) return "the outputs' types do not fit";
  if (inputs[0].ndim == 0) return "the input is a scalar";
  return outputs[0].ndim == inputs[0].ndim && outputs[1].ndim == inputs[0].ndim ? nullptr : "the ranks differ";
}

/// A row of elements at a distance, and the order of the result.
struct Row {
  const char* data;
  int64_t stride;  ///< bytes
  Compare compare;
  bool largest;
  /// Whether i comes before j in the result.
  bool before(int64_t i, int64_t j) const {
    const int order = compare(data + i * stride, data + j * stride);
    if (order != 0) return largest ? order > 0 : order < 0;
    return i < j;
  }
};

/// Restores the heap below `root`: every index comes after its children, so that the last of all is at the top.
void sift(const Row& row, int64_t* heap, int64_t stride, int64_t root, int64_t n) {
  for (;;) {
    int64_t last = root;
    for (int64_t child = 2 * root + 1; child <= 2 * root + 2 && child < n; ++child)
      if (row.before(heap[last * stride], heap[child * stride])) last = child;
    if (last == root) return;
    const int64_t kept = heap[root * stride];
    heap[root * stride] = heap[last * stride];
    heap[last * stride] = kept;
    root = last;
  }
}

/// The first k of n indices in order, written `stride` apart.
void select(const Row& row, int64_t n, int64_t k, int64_t* out, int64_t stride) {
  for (int64_t i = 0; i < k; ++i) out[i * stride] = i;
  for (int64_t i = k / 2; i-- > 0;) sift(row, out, stride, i, k);
  for (int64_t i = k; i < n; ++i) {
    if (!row.before(i, out[0])) continue;
    out[0] = i;
    sift(row, out, stride, 0, k);
  }
  for (int64_t end = k; end-- > 1;) {  // the last of the rest goes to its end
    const int64_t last = out[0];
    out[0] = out[end * stride];
    out[end * stride] = last;
    sift(row, out, stride, 0, end);
  }
}

cuvil_status run(const HostCall& call) {
  const HostTensor& x = call.inputs[0];
  const HostTensor& values = call.outputs[0];
  const HostTensor& indices = call.outputs[1];
  const int64_t axis = int_attribute(*call.step, "axis", -1);
  if (axis < 0 || axis >= x.ndim) return fail(CUVIL_INTERNAL_ERROR, "TopK: the axis is out of range");
  const int64_t n = x.dims[axis], k = values.dims[axis];
  int64_t outer = 1, inner = 1;
  for (int64_t a = 0; a < x.ndim; ++a) {
    if (a != axis && (values.dims[a] != x.dims[a] || indices.dims[a] != x.dims[a]))
      return fail(CUVIL_INTERNAL_ERROR, "TopK: axis %lld of the results differs", static_cast<long long>(a));
    if (a != axis) (a < axis ? outer : inner) *= x.dims[a];
  }
  if (indices.dims[axis] != k) return fail(CUVIL_INTERNAL_ERROR, "TopK: the results differ in size");
  if (k > n)
    return fail(CUVIL_SHAPE_ERROR, "TopK: %lld of %lld elements", static_cast<long long>(k), static_cast<long long>(n));
  if (k == 0) return CUVIL_OK;
  const int64_t bytes = dtype_bytes(x.dtype);
  const bool largest = int_attribute(*call.step, "largest", 1) != 0;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      const Row row = {static_cast<const char*>(x.data) + (o * n * inner + i) * bytes, inner * bytes,
                       compare_function(x.dtype), largest};
      const int64_t first = o * k * inner + i;
      int64_t* picked = static_cast<int64_t*>(indices.data) + first;
      select(row, n, k, picked, inner);
      char* to = static_cast<char*>(values.data) + first * bytes;
      for (int64_t j = 0; j < k; ++j)
        memcpy(to + j * inner * bytes, row.data + picked[j * inner] * row.stride, static_cast<size_t>(bytes));
    }
  return CUVIL_OK;
}

}  // namespace

const HostOperator kTopK = {"TopK", 1, 2, 0, check, run};

}  // namespace cuvil::runtime
