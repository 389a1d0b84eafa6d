// Element types of tensors and of Kernel IR values.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/abi/abi.h"

namespace cuvil {

/// Same numbers as cuvil_dtype (core/abi/abi.h), which .cvl files store.
enum class DType : uint8_t {
  f32 = CUVIL_F32,
  f64 = CUVIL_F64,
  f16 = CUVIL_F16,
  bf16 = CUVIL_BF16,
  i64 = CUVIL_I64,
  i32 = CUVIL_I32,
  i16 = CUVIL_I16,
  i8 = CUVIL_I8,
  u64 = CUVIL_U64,
  u32 = CUVIL_U32,
  u16 = CUVIL_U16,
  u8 = CUVIL_U8,
  boolean = CUVIL_BOOL,
};
inline constexpr int kDTypeCount = 13;

/// Bytes of one element; bool takes one byte, 0 or 1.
int size_of(DType t);
bool is_float(DType t);
bool is_signed_int(DType t);
bool is_unsigned_int(DType t);
inline bool is_int(DType t) { return is_signed_int(t) || is_unsigned_int(t); }

/// "f32", "i64", "bool", ...
std::string_view name_of(DType t);
std::optional<DType> dtype_from_name(std::string_view name);

}  // namespace cuvil
