#include "tests/driver/run_model.h"

#include <cstring>
#include <memory>

#include "core/base/error.h"

namespace cuvil::test {
namespace {

DLDataType dl_type(DType t) {
  const auto bits = static_cast<uint8_t>(8 * size_of(t));
  if (t == DType::boolean) return {kDLBool, 8, 1};
  if (t == DType::bf16) return {kDLBfloat, bits, 1};
  return {static_cast<uint8_t>(is_float(t) ? kDLFloat : is_signed_int(t) ? kDLInt : kDLUInt), bits, 1};
}

DType dtype_of(DLDataType t) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const DLDataType d = dl_type(static_cast<DType>(i));
    if (d.code == t.code && d.bits == t.bits) return static_cast<DType>(i);
  }
  throw_internal("an output of an unknown type");
}

void check(cuvil_status status) {
  if (status != CUVIL_OK) throw Error(status, cuvil_last_error());
}

}  // namespace

std::vector<ir::Tensor> run_model(cuvil_model* model, const std::vector<ir::Tensor>& inputs, int threads) {
  cuvil_context* raw = nullptr;
  check(cuvil_context_create(model, threads, &raw));
  const std::unique_ptr<cuvil_context, decltype(&cuvil_context_destroy)> context(raw, cuvil_context_destroy);
  std::vector<std::vector<int64_t>> shapes;
  std::vector<DLTensor> tensors;
  shapes.reserve(inputs.size());
  tensors.reserve(inputs.size());
  std::vector<const DLTensor*> pointers;
  for (const ir::Tensor& t : inputs) {
    std::vector<int64_t>& shape = shapes.emplace_back();
    for (const Dim& d : t.type.shape) shape.push_back(d.value());
    tensors.push_back(
        {const_cast<void*>(t.data.get()), {kDLCPU, 0}, t.type.rank(), dl_type(t.type.dtype), shape.data(), nullptr, 0});
    pointers.push_back(&tensors.back());
  }
  std::vector<DLManagedTensor*> outputs(cuvil_output_count(model));
  check(cuvil_run_alloc(context.get(), pointers.data(), pointers.size(), outputs.data(), outputs.size()));
  std::vector<ir::Tensor> results;
  for (DLManagedTensor* o : outputs) {
    ir::Type type{dtype_of(o->dl_tensor.dtype), {}, {}};
    for (int i = 0; i < o->dl_tensor.ndim; ++i) type.shape.emplace_back(o->dl_tensor.shape[i]);
    auto [tensor, bytes] = ir::Tensor::allocate(type);
    std::memcpy(bytes, o->dl_tensor.data, static_cast<size_t>(tensor.bytes()));
    results.push_back(tensor);
    o->deleter(o);
  }
  return results;
}

}  // namespace cuvil::test
