#include "runtime/dtypes.h"

#include <cstdio>

#include "cuvil/runtime.h"

namespace cuvil::runtime {

namespace {
// In the order of cuvil_dtype. DLPack's codes: 0 int, 1 uint, 2 float, 4 bfloat, 6 bool.
constexpr DTypeInfo kTypes[] = {
    {"f32", 4, 2}, {"f64", 8, 2}, {"f16", 2, 2}, {"bf16", 2, 4}, {"i64", 8, 0}, {"i32", 4, 0},  {"i16", 2, 0},
    {"i8", 1, 0},  {"u64", 8, 1}, {"u32", 4, 1}, {"u16", 2, 1},  {"u8", 1, 1},  {"bool", 1, 6},
};
constexpr unsigned kCount = sizeof(kTypes) / sizeof(kTypes[0]);
static_assert(kCount == CUVIL_BOOL + 1);
}  // namespace

const DTypeInfo* dtype_info(unsigned dtype) { return dtype < kCount ? &kTypes[dtype] : nullptr; }

DLDataType to_dlpack(unsigned dtype) {
  const DTypeInfo& info = kTypes[dtype];
  return {info.dl_code, static_cast<uint8_t>(info.bytes * 8), 1};
}

const char* describe(DLDataType type, char* text) {
  for (unsigned i = 0; i < kCount; ++i)
    if (same_dtype(type, i)) return kTypes[i].name;
  snprintf(text, 64, "DLPack type code %d, %d bits, %d lanes", type.code, type.bits, type.lanes);
  return text;
}

}  // namespace cuvil::runtime

extern "C" {

const char* cuvil_dtype_name(cuvil_dtype dtype) {
  const auto* info = cuvil::runtime::dtype_info(dtype);
  return info ? info->name : "unknown";
}

size_t cuvil_dtype_size(cuvil_dtype dtype) {
  const auto* info = cuvil::runtime::dtype_info(dtype);
  return info ? info->bytes : 0;
}
}
