#include "runtime/tensors.h"

#include "runtime/dtypes.h"
#include "runtime/error.h"

namespace cuvil::runtime {

int64_t element_count(const DLTensor& t) {
  int64_t n = 1;
  for (int32_t i = 0; i < t.ndim; ++i) n *= t.shape[i];
  return n;
}

cuvil_status check_tensor(const DLTensor* t, const Tensor& expected, const char* what, size_t index) {
  const char* name = expected.info.name;
  if (!t) return fail(CUVIL_SHAPE_ERROR, "%s %zu ('%.80s') is missing", what, index, name);
  if (t->device.device_type != kDLCPU && t->device.device_type != kDLCUDAHost)
    return fail(CUVIL_SHAPE_ERROR, "%s '%.80s' is on DLPack device type %d; move it to the CPU first", what, name,
                static_cast<int>(t->device.device_type));
  if (!same_dtype(t->dtype, expected.info.dtype)) {
    char text[64];
    return fail(CUVIL_SHAPE_ERROR, "%s '%.80s' has element type %s, expected %s", what, name, describe(t->dtype, text),
                dtype_info(expected.info.dtype)->name);
  }
  if (t->ndim != expected.info.ndim || (t->ndim > 0 && !t->shape))
    return fail(CUVIL_SHAPE_ERROR, "%s '%.80s' has %d dimensions, expected %d", what, name, t->ndim,
                expected.info.ndim);
  int64_t bytes = dtype_bytes(expected.info.dtype);
  bool empty = false;
  for (int32_t i = 0; i < t->ndim; ++i) {
    if (t->shape[i] < 0) return fail(CUVIL_SHAPE_ERROR, "%s '%.80s': axis %d has negative extent", what, name, i);
    empty |= t->shape[i] == 0;
    if (t->shape[i] > 0 && (__builtin_mul_overflow(bytes, t->shape[i], &bytes) || bytes > kMaxBytes))
      return fail(CUVIL_SHAPE_ERROR, "%s '%.80s' is too large", what, name);
  }
  if (!t->data && !empty) return fail(CUVIL_SHAPE_ERROR, "%s '%.80s' has no memory", what, name);
  return CUVIL_OK;
}

bool is_contiguous(const DLTensor& t) {
  if (!t.strides) return true;
  int64_t stride = 1;
  for (int32_t i = t.ndim; i-- > 0;) {
    if (t.shape[i] == 0) return true;
    if (t.shape[i] != 1 && t.strides[i] != stride) return element_count(t) == 0;
    stride *= t.shape[i];
  }
  return true;
}

bool is_aligned(const DLTensor& t) { return reinterpret_cast<uintptr_t>(data_of(t)) % (t.dtype.bits / 8u) == 0; }

size_t packed_bytes(const DLTensor& t) { return static_cast<size_t>(element_count(t)) * (t.dtype.bits / 8u); }

bool overlap(const DLTensor& a, const DLTensor& b) {
  uintptr_t begin[2], end[2];
  for (int k = 0; k < 2; ++k) {
    const DLTensor& t = k == 0 ? a : b;
    if (element_count(t) == 0) return false;
    const int64_t width = t.dtype.bits / 8;
    begin[k] = end[k] = reinterpret_cast<uintptr_t>(data_of(t));
    if (is_contiguous(t)) {
      end[k] += packed_bytes(t);
      continue;
    }
    end[k] += static_cast<uintptr_t>(width);
    for (int32_t i = 0; i < t.ndim; ++i) {
      const int64_t reach = (t.shape[i] - 1) * t.strides[i] * width;
      (reach < 0 ? begin[k] : end[k]) += static_cast<uintptr_t>(reach);
    }
  }
  return begin[0] < end[1] && begin[1] < end[0];
}

namespace {

template <size_t kWidth>
void copy_row(const char* from, int64_t stride, int64_t n, char* to) {
  for (int64_t i = 0; i < n; ++i) memcpy(to + i * int64_t{kWidth}, from + i * stride, kWidth);
}

}  // namespace

void pack_tensor(const DLTensor& t, char* to) {
  const int64_t width = t.dtype.bits / 8;
  const int64_t total = element_count(t);
  if (total == 0) return;
  if (is_contiguous(t)) {
    memcpy(to, data_of(t), static_cast<size_t>(total * width));
    return;
  }
  // Row by row along the last axis; the index counts through the others.
  const int32_t last = t.ndim - 1;
  const int64_t n = t.shape[last], stride = t.strides[last] * width;
  int64_t index[kMaxRank] = {};
  const char* from = data_of(t);
  for (int64_t row = 0; row < total / n; ++row, to += n * width) {
    switch (width) {
      case 1:
        copy_row<1>(from, stride, n, to);
        break;
      case 2:
        copy_row<2>(from, stride, n, to);
        break;
      case 4:
        copy_row<4>(from, stride, n, to);
        break;
      default:
        copy_row<8>(from, stride, n, to);
        break;
    }
    for (int32_t i = last; i-- > 0;) {
      from += t.strides[i] * width;
      if (++index[i] < t.shape[i]) break;
      from -= t.strides[i] * width * t.shape[i];
      index[i] = 0;
    }
  }
}

bool has_elements(const DLTensor& t, const uint8_t* packed, size_t bytes) {
  if (packed_bytes(t) != bytes) return false;
  const size_t width = t.dtype.bits / 8u;
  for (size_t i = 0; i * width < bytes; ++i) {
    int64_t at = static_cast<int64_t>(i);
    if (!is_contiguous(t)) {
      int64_t rest = at;
      at = 0;
      for (int32_t axis = t.ndim; axis-- > 0; rest /= t.shape[axis]) at += rest % t.shape[axis] * t.strides[axis];
    }
    if (memcmp(data_of(t) + at * static_cast<int64_t>(width), packed + i * width, width) != 0) return false;
  }
  return true;
}

DLManagedTensor* new_tensor(unsigned dtype, int32_t ndim, const int64_t* dims) {
  size_t bytes = static_cast<size_t>(dtype_bytes(dtype));
  for (int32_t i = 0; i < ndim; ++i) bytes *= static_cast<size_t>(dims[i]);
  bytes = (bytes + CUVIL_ALIGNMENT - 1) / CUVIL_ALIGNMENT * CUVIL_ALIGNMENT;
  void* memory;
  if (posix_memalign(&memory, CUVIL_ALIGNMENT, bytes + sizeof(DLManagedTensor) + static_cast<size_t>(ndim) * 8) != 0)
    return nullptr;
  auto* tensor = reinterpret_cast<DLManagedTensor*>(static_cast<char*>(memory) + bytes);
  auto* shape = reinterpret_cast<int64_t*>(tensor + 1);
  for (int32_t i = 0; i < ndim; ++i) shape[i] = dims[i];
  *tensor = {};
  tensor->dl_tensor.data = memory;
  tensor->dl_tensor.device = {kDLCPU, 0};
  tensor->dl_tensor.ndim = ndim;
  tensor->dl_tensor.dtype = to_dlpack(dtype);
  tensor->dl_tensor.shape = shape;
  tensor->manager_ctx = memory;
  tensor->deleter = [](DLManagedTensor* self) { free(self->manager_ctx); };
  return tensor;
}

}  // namespace cuvil::runtime
