#include <sstream>

#include "core/ops/op.h"

namespace cuvil::ops {
namespace {

struct PrintAttribute {
  std::string operator()(int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const {
    std::ostringstream s;
    s << v;
    return s.str();
  }
  std::string operator()(const std::string& v) const { return "\"" + v + "\""; }
  std::string operator()(DType v) const { return std::string(name_of(v)); }
  std::string operator()(const Shape& v) const { return to_string(v); }
  std::string operator()(const ir::Tensor& v) const { return v.type.str(); }
  std::string operator()(const ir::Layout&) const { return "plain"; }
  template <class T>
  std::string operator()(const std::vector<T>& v) const {
    std::string s;
    for (const T& x : v) s += (s.empty() ? "" : ", ") + (*this)(x);
    return "[" + s + "]";
  }
};

std::string values_text(const std::vector<ValueSpec>& specs) {
  std::string s;
  for (const ValueSpec& v : specs) {
    s += (s.empty() ? "" : "; ") + ("`" + std::string(v.name) + "` " + std::string(v.doc));
    if (v.variadic) s += " (one or more)";
    if (v.optional && !v.variadic) s += " (optional)";
  }
  return s.empty() ? "none" : s;
}

constexpr struct {
  Trait trait;
  std::string_view name;
} kNames[] = {
    {kElementwise, "elementwise"},
    {kReduction, "reduction"},
    {kContraction, "contraction"},
    {kView, "view"},
    {kCommutative, "commutative"},
    {kConstant, "constant"},
    {kHost, "host"},
    {kBlockable, "blockable"},
    {kImage, "image"},
    {kConcat, "concat"},
    {kReorder, "reorder"},
    {kRowwise, "rowwise"},
    {kEpilogueOk, "epilogue"},
    {kDataDependent, "data-dependent"},
    {kControl, "control flow"},
};

}  // namespace

std::string markdown() {
  std::string s =
      "# Operators of CIR\n\n"
      "Generated from the declarations in `core/ops/` (`CUVIL_BLESS=1` refreshes this page). Broadcasting is numpy's. "
      "An attribute with a value after `=` may be left out.\n";
  for (const OpDef* d : all()) {
    s += "\n## " + std::string(d->name) + "\n" + std::string(d->doc) + "\n\n";
    s += "- inputs: " + values_text(d->inputs) + "\n";
    s += "- outputs: " + values_text(d->outputs) + "\n";
    for (const AttrSpec& a : d->attributes) {
      s += "- attribute `" + std::string(a.name);
      if (a.fallback) s += " = " + std::visit(PrintAttribute{}, *a.fallback);
      s += "`: " + std::string(a.doc) + (a.required || a.fallback ? "" : " (may be absent)") + "\n";
    }
    std::string dtypes;
    for (DType t : d->dtypes) dtypes += (dtypes.empty() ? "" : ", ") + std::string(name_of(t));
    s += "- element types: " + (dtypes.empty() ? "f32, i64, i32, u8, bool" : dtypes) + "\n";
    std::string traits;
    for (const auto& n : kNames)
      if (d->is(n.trait)) traits += (traits.empty() ? "" : ", ") + std::string(n.name);
    if (!traits.empty()) s += "- traits: " + traits + "\n";
  }
  return s;
}

}  // namespace cuvil::ops
