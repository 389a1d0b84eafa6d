/* Kernels in the shape of generated ones: cuvil_kernel_fn, nothing imported. */
#include <stdint.h>

#define KERNEL(name) \
  int32_t name(const void* const* buffers, const int64_t* dims, int64_t begin, int64_t end, void* scratch)

enum { kChunk = 16 };

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* y[i] = 2 * x[i] for dims[0] elements, kChunk per task */
KERNEL(twice_p0) {
  const float* x = buffers[0];
  float* y = (float*)buffers[1];
  const int64_t n = least(end * kChunk, dims[0]);
  (void)scratch;
  for (int64_t i = begin * kChunk; i < n; ++i) y[i] = 2 * x[i];
  return 0;
}

/* y[i] = x[i] + c[i] */
KERNEL(add_p0) {
  const float *x = buffers[0], *c = buffers[1];
  float* y = (float*)buffers[2];
  const int64_t n = least(end * kChunk, dims[0]);
  (void)scratch;
  for (int64_t i = begin * kChunk; i < n; ++i) y[i] = x[i] + c[i];
  return 0;
}

/* Two phases over dims = {elements, tasks}: partial sums into a workspace, then their sum into y[0]. */
KERNEL(sum_p0) {
  const float* x = buffers[0];
  float* partial = (float*)buffers[1];
  (void)scratch;
  for (int64_t task = begin; task < end; ++task) {
    float sum = 0;
    for (int64_t i = task * kChunk; i < least((task + 1) * kChunk, dims[0]); ++i) sum += x[i];
    partial[task] = sum;
  }
  return 0;
}
KERNEL(sum_p1) {
  const float* partial = buffers[1];
  float sum = 0;
  (void)begin, (void)end, (void)scratch;
  for (int64_t i = 0; i < dims[1]; ++i) sum += partial[i];
  *(float*)buffers[2] = sum;
  return 0;
}

/* Fills its scratch (64 numbers) with the task's number, then counts it into y[task]: wrong if two threads share it. */
KERNEL(scratch_p0) {
  float* y = (float*)buffers[0];
  volatile float* s = scratch;
  (void)dims;
  for (int64_t task = begin; task < end; ++task) {
    float sum = 0;
    for (int i = 0; i < 64; ++i) s[i] = (float)task;
    for (int i = 0; i < 64; ++i) sum += s[i];
    y[task] = sum / 64;
  }
  return 0;
}

/* CUVIL_KERNEL_INDEX_OUT_OF_RANGE if x[0] is not below dims[0], else y[0] = x[0] */
KERNEL(check_p0) {
  const float* x = buffers[0];
  (void)begin, (void)end, (void)scratch;
  if (!(x[0] < (float)dims[0])) return 1;
  *(float*)buffers[1] = x[0];
  return 0;
}
