// Unique (ONNX): the different slices along an axis, in order of their values or of their first appearance; with the
// index of each one's first appearance, the number of each input slice's representative, and how often each occurs.
// Sets one symbol, their number. The input lies as [outer, slices, inner]; slices are compared element by element.
// Source: https://onnx.ai/onnx/operators/onnx__Unique.html
#include "runtime/dtypes.h"
#include "runtime/error.h"
#include "runtime/host_ops/attributes.h"
#include "runtime/host_ops/element.h"
#include "runtime/host_ops/host_op.h"

namespace cuvil::runtime {

namespace {

const char* check(const HostTensor* inputs, const HostTensor* outputs) {
  if (inputs[0].ndim != 3 || outputs[0].ndim != 3 || outputs[0].dtype != inputs[0].dtype)
    return "input and output are not of one type with 3 dimensions";
  for (int i = 1; i < 5; ++i)
    if (outputs[i].ndim != 1 || outputs[i].dtype != CUVIL_I64) return "indices are not i64 with one dimension";
  return nullptr;
}

struct Slices {
  const char* data;
  int64_t outer, count, inner, bytes;
  Compare compare;
  int order(int64_t i, int64_t j) const {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t k = 0; k < inner; ++k)
        if (const int c =
                compare(data + ((o * count + i) * inner + k) * bytes, data + ((o * count + j) * inner + k) * bytes))
          return c;
    return 0;
  }
  bool before(int64_t i, int64_t j) const {
    const int c = order(i, j);
    return c != 0 ? c < 0 : i < j;
  }
};

void sift(const Slices& s, int64_t* heap, int64_t root, int64_t n) {
  for (;;) {
    int64_t last = root;
    for (int64_t child = 2 * root + 1; child <= 2 * root + 2 && child < n; ++child)
      if (s.before(heap[last], heap[child])) last = child;
    if (last == root) return;
    const int64_t kept = heap[root];
    heap[root] = heap[last];
    heap[last] = kept;
    root = last;
  }
}

/// Heap sort: in place, and the order of equal slices is that of their numbers.
void sort(const Slices& s, int64_t* numbers, int64_t n) {
  for (int64_t i = 0; i < n; ++i) numbers[i] = i;
  for (int64_t i = n / 2; i-- > 0;) sift(s, numbers, i, n);
  for (int64_t end = n; end-- > 1;) {
    const int64_t last = numbers[0];
    numbers[0] = numbers[end];
    numbers[end] = last;
    sift(s, numbers, 0, end);
  }
}

cuvil_status run(const HostCall& call) {
  const HostTensor& x = call.inputs[0];
  const Slices s = {static_cast<const char*>(x.data), x.dims[0], x.dims[1], x.dims[2], dtype_bytes(x.dtype),
                    compare_function(x.dtype)};
  auto* y = static_cast<char*>(call.outputs[0].data);
  auto* first = static_cast<int64_t*>(call.outputs[1].data);
  auto* inverse = static_cast<int64_t*>(call.outputs[2].data);
  auto* counts = static_cast<int64_t*>(call.outputs[3].data);
  auto* order = static_cast<int64_t*>(call.outputs[4].data);
  const int64_t n = s.count;
  if (call.outputs[2].dims[0] != n || call.outputs[4].dims[0] != n || call.limits[0] < n)
    return fail(CUVIL_INTERNAL_ERROR, "Unique: the results do not fit %lld slices", static_cast<long long>(n));
  sort(s, order, n);
  // The first of equal ones stands before the others.
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (i == 0 || s.order(order[i - 1], order[i]) != 0) {
      first[count] = order[i];
      counts[count++] = 0;
    }
    inverse[order[i]] = count - 1;
    ++counts[count - 1];
  }
  if (int_attribute(*call.step, "sorted", 1) == 0) {
    // By first appearance: a slice that is its own representative's first gets the next number.
    int64_t next = 0;
    for (int64_t i = 0; i < n; ++i)
      if (first[inverse[i]] == i) order[inverse[i]] = next++;  // new number of each old one
    for (int64_t i = 0; i < n; ++i) inverse[i] = order[inverse[i]];
    for (int64_t i = 0; i < count; ++i) counts[i] = 0;
    for (int64_t i = 0; i < n; ++i)
      if (counts[inverse[i]]++ == 0) first[inverse[i]] = i;
  }
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t i = 0; i < count; ++i)
      memcpy(y + (o * count + i) * s.inner * s.bytes, s.data + (o * n + first[i]) * s.inner * s.bytes,
             static_cast<size_t>(s.inner * s.bytes));
  call.symbols[0] = count;
  return CUVIL_OK;
}

}  // namespace

const HostOperator kUnique = {"Unique", 1, 5, 1, check, run};

}  // namespace cuvil::runtime
