#include "core/ops/indexing.h"

#include "core/abi/abi.h"

namespace cuvil::ops {

using kernel::Expr;

Expr checked_index(LowerContext& c, const Expr& index, const Expr& size) {
  const Expr i = c.b().let("i", kernel::cast({DType::i64, 1}, index));
  c.b().branch((i < -size) | (i >= size), [&] { c.b().fail(CUVIL_KERNEL_INDEX_OUT_OF_RANGE); });
  return c.b().let("at", kernel::select(i < Expr(0), i + size, i));
}

void need_index(const InferContext& c, size_t i) {
  if (c.in(i).dtype != DType::i64 && c.in(i).dtype != DType::i32) c.fail("indices must be i64 or i32");
}

Expr combine(const std::string& reduction, const Expr& old, const Expr& update) {
  if (reduction == "add") return old + update;
  if (reduction == "mul") return old * update;
  if (reduction == "min") return kernel::min(old, update);
  if (reduction == "max") return kernel::max(old, update);
  return update;
}

AttrSpec reduction_attribute() {
  return optional("reduction", AttrKind::string, "none, add, mul, min or max: what becomes of an element met again",
                  std::string("none"));
}

void check_reduction(const InferContext& c) {
  const std::string& r = c.node.attr<std::string>("reduction");
  if (r != "none" && r != "add" && r != "mul" && r != "min" && r != "max")
    c.fail("reduction must be none, add, mul, min or max");
  const DType t = c.in(0).dtype;
  if (r != "none" && (t == DType::boolean || t == DType::f16 || t == DType::bf16))
    c.fail("reduction " + r + " of " + std::string(name_of(t)) + " is not supported; cast to f32");
}

}  // namespace cuvil::ops
