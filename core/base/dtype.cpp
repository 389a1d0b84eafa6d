#include "core/base/dtype.h"

namespace cuvil {
namespace {
enum class Kind : uint8_t { floating, signed_int, unsigned_int, boolean };
struct Info {
  std::string_view name;
  int bytes;
  Kind kind;
};
constexpr Info kInfo[kDTypeCount] = {
    {"f32", 4, Kind::floating},     {"f64", 8, Kind::floating},     {"f16", 2, Kind::floating},
    {"bf16", 2, Kind::floating},    {"i64", 8, Kind::signed_int},   {"i32", 4, Kind::signed_int},
    {"i16", 2, Kind::signed_int},   {"i8", 1, Kind::signed_int},    {"u64", 8, Kind::unsigned_int},
    {"u32", 4, Kind::unsigned_int}, {"u16", 2, Kind::unsigned_int}, {"u8", 1, Kind::unsigned_int},
    {"bool", 1, Kind::boolean},
};
const Info& info(DType t) { return kInfo[static_cast<int>(t)]; }
}  // namespace

int size_of(DType t) { return info(t).bytes; }
bool is_float(DType t) { return info(t).kind == Kind::floating; }
bool is_signed_int(DType t) { return info(t).kind == Kind::signed_int; }
bool is_unsigned_int(DType t) { return info(t).kind == Kind::unsigned_int; }
std::string_view name_of(DType t) { return info(t).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (kInfo[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

}  // namespace cuvil
