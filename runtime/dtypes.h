// Element types as DLPack and as people name them.
#pragma once

#include "core/abi/abi.h"
#include "core/abi/dlpack.h"

namespace cuvil::runtime {

struct DTypeInfo {
  const char* name;
  uint8_t bytes;
  uint8_t dl_code;  ///< DLPack's type code
};

/// Null for a number that is no cuvil_dtype.
const DTypeInfo* dtype_info(unsigned dtype);
inline int64_t dtype_bytes(unsigned dtype) { return dtype_info(dtype)->bytes; }
DLDataType to_dlpack(unsigned dtype);
inline bool same_dtype(DLDataType a, unsigned dtype) {
  const DLDataType b = to_dlpack(dtype);
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}
/// "f32", or "DLPack type code 5, 64 bits" for one that has no name here. `text` has room for 64 characters.
const char* describe(DLDataType type, char* text);

}  // namespace cuvil::runtime
