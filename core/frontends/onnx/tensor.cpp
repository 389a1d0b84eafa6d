#include "core/frontends/onnx/tensor.h"

#include <charconv>
#include <cstring>
#include <filesystem>

#include "core/base/mapped_file.h"

namespace cuvil::frontends::onnx {
namespace {

struct TypeRow {
  int32_t id;
  const char* name;
  std::optional<DType> dtype;
};
const TypeRow kTypes[] = {
    {1, "float", DType::f32},    {2, "uint8", DType::u8},
    {3, "int8", DType::i8},      {4, "uint16", DType::u16},
    {5, "int16", DType::i16},    {6, "int32", DType::i32},
    {7, "int64", DType::i64},    {8, "string", {}},
    {9, "bool", DType::boolean}, {10, "float16", DType::f16},
    {11, "double", DType::f64},  {12, "uint32", DType::u32},
    {13, "uint64", DType::u64},  {14, "complex64", {}},
    {15, "complex128", {}},      {16, "bfloat16", DType::bf16},
    {17, "float8e4m3fn", {}},    {18, "float8e4m3fnuz", {}},
    {19, "float8e5m2", {}},      {20, "float8e5m2fnuz", {}},
    {21, "uint4", {}},           {22, "int4", {}},
    {23, "float4e2m1", {}},      {24, "float8e8m0", {}},
    {25, "uint2", {}},           {26, "int2", {}},
};

int64_t parse_number(std::string_view text, const Location& where) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    throw_model_error("external data has offset or length '" + std::string(text) + "', not a number", where);
  return value;
}

/// The bytes of an external tensor; its file must be a regular file inside the model's folder, links resolved.
std::pair<std::shared_ptr<const void>, std::string_view> external_bytes(const ProtoTensor& proto,
                                                                        const ModelSource& source,
                                                                        const Location& where) {
  namespace fs = std::filesystem;
  auto field = [&](std::string_view key) -> std::string_view {
    auto it = proto.external_data.find(key);
    return it == proto.external_data.end() ? std::string_view() : it->second;
  };
  const std::string location(field("location"));
  if (source.folder.empty())
    throw_model_error("the model keeps weights in the file '" + location +
                          "', but it was given as bytes; import it from its path instead",
                      where);
  std::error_code ec;
  const fs::path folder = fs::canonical(source.folder, ec);
  if (ec || location.empty() || location.find('\0') != std::string::npos || fs::path(location).is_absolute())
    throw_model_error("external data location '" + location + "' is not a relative path", where);
  const fs::path file = fs::canonical(folder / location, ec);
  if (ec) throw_model_error("external data file '" + location + "' is missing from the model's folder", where);
  const fs::path inside = file.lexically_relative(folder);
  if (inside.empty() || *inside.begin() == "..")
    throw_model_error("external data location '" + location + "' leads out of the model's folder", where);

  const MappedFile mapped = map_file(file.string(), CUVIL_MODEL_ERROR);
  const auto size = static_cast<int64_t>(mapped.bytes.size());
  const int64_t offset = field("offset").empty() ? 0 : parse_number(field("offset"), where);
  const int64_t length = field("length").empty() ? size - offset : parse_number(field("length"), where);
  if (offset > size || length < 0 || length > size - offset)
    throw_model_error("external data file '" + location + "' is too short: bytes " + std::to_string(offset) + " + " +
                          std::to_string(length) + " of " + std::to_string(size),
                      where);
  return {mapped.owner, mapped.bytes.substr(static_cast<size_t>(offset), static_cast<size_t>(length))};
}

template <class To, class From>
std::vector<uint8_t> convert(const std::vector<From>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(To));
  for (size_t i = 0; i < values.size(); ++i) {
    const To v = static_cast<To>(values[i]);
    std::memcpy(bytes.data() + i * sizeof(To), &v, sizeof(To));
  }
  return bytes;
}

/// The typed fields; which one holds a type's values is said in onnx.proto.
std::vector<uint8_t> typed_bytes(const ProtoTensor& p, DType t) {
  switch (t) {
    case DType::f32:
      return convert<float>(p.floats);
    case DType::f64:
      return convert<double>(p.doubles);
    case DType::i64:
      return convert<int64_t>(p.ints64);
    case DType::u64:
      return convert<uint64_t>(p.uints64);
    case DType::u32:
      return convert<uint32_t>(p.uints64);
    case DType::i32:
      return convert<int32_t>(p.ints32);
    case DType::i16:
      return convert<int16_t>(p.ints32);
    case DType::u16:
    case DType::f16:
    case DType::bf16:
      return convert<uint16_t>(p.ints32);
    case DType::i8:
      return convert<int8_t>(p.ints32);
    case DType::u8:
      return convert<uint8_t>(p.ints32);
    case DType::boolean: {
      std::vector<uint8_t> bytes = convert<uint8_t>(p.ints32);
      for (uint8_t& b : bytes) b = b != 0;
      return bytes;
    }
  }
  return {};
}

}  // namespace

std::optional<DType> dtype_of(int32_t onnx_type) {
  for (const TypeRow& row : kTypes)
    if (row.id == onnx_type) return row.dtype;
  return std::nullopt;
}

std::string onnx_type_name(int32_t onnx_type) {
  for (const TypeRow& row : kTypes)
    if (row.id == onnx_type) return row.name;
  return "element type " + std::to_string(onnx_type);
}

ir::Tensor to_tensor(const ProtoTensor& proto, const ModelSource& source, const Location& where) {
  const std::optional<DType> dtype = dtype_of(proto.data_type);
  const std::string what = "tensor '" + std::string(proto.name) + "'";
  if (!dtype) throw_unsupported(what + " is of " + onnx_type_name(proto.data_type), where);
  ir::Type type{*dtype, {}, {}};
  int64_t elements = 1;
  for (int64_t d : proto.dims) {
    if (d < 0 || __builtin_mul_overflow(elements, d, &elements) || elements > (int64_t{1} << 40))
      throw_model_error(what + " has an impossible shape", where);
    type.shape.push_back(Dim(d));
  }
  const auto want = static_cast<size_t>(elements * size_of(*dtype));
  auto mismatch = [&](size_t got) {
    throw_model_error(
        what + " of " + type.str() + " needs " + std::to_string(want) + " bytes but has " + std::to_string(got), where);
  };
  if (proto.external || proto.raw) {
    std::shared_ptr<const void> owner = source.owner;
    std::string_view bytes = proto.raw.value_or(std::string_view());
    if (proto.external) std::tie(owner, bytes) = external_bytes(proto, source, where);
    if (bytes.size() != want) mismatch(bytes.size());
    if (*dtype == DType::boolean) {  // any nonzero byte is true; ours are 0 and 1
      std::vector<uint8_t> canonical(bytes.begin(), bytes.end());
      for (uint8_t& b : canonical) b = b != 0;
      return ir::Tensor::from_bytes(std::move(type), std::move(canonical));
    }
    return {std::move(type), std::shared_ptr<const void>(owner, bytes.data())};
  }
  std::vector<uint8_t> bytes = typed_bytes(proto, *dtype);
  if (bytes.size() != want) mismatch(bytes.size());
  return ir::Tensor::from_bytes(std::move(type), std::move(bytes));
}

}  // namespace cuvil::frontends::onnx
