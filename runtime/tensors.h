// The caller's tensors: checks, copies of those that kernels cannot read in place, fresh outputs.
#pragma once

#include "core/abi/dlpack.h"
#include "runtime/program.h"

namespace cuvil::runtime {

inline char* data_of(const DLTensor& t) { return static_cast<char*>(t.data) + t.byte_offset; }
int64_t element_count(const DLTensor& t);

/// Device, element type, rank, non-negative dimensions, memory. `what` is "input" or "output".
cuvil_status check_tensor(const DLTensor* t, const Tensor& expected, const char* what, size_t index);
/// Row-major without gaps; dimensions of extent 1 may have any stride.
bool is_contiguous(const DLTensor& t);
bool is_aligned(const DLTensor& t);
/// Bytes of the tensor's elements, row-major. Its dimensions are checked.
size_t packed_bytes(const DLTensor& t);
/// True if the memory that the two tensors span has a byte in common. Exact for contiguous ones.
bool overlap(const DLTensor& a, const DLTensor& b);
/// Copies a tensor of any strides to row-major memory.
void pack_tensor(const DLTensor& t, char* to);

/// True if the tensor, of any strides, has these elements, row-major.
bool has_elements(const DLTensor& t, const uint8_t* packed, size_t bytes);

/// Fresh memory for a contiguous tensor, its shape and its DLManagedTensor, in one block. Null if
/// memory is short.
DLManagedTensor* new_tensor(unsigned dtype, int32_t ndim, const int64_t* dims);

}  // namespace cuvil::runtime
