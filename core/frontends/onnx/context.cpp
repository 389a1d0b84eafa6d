#include "core/frontends/onnx/context.h"

#include <algorithm>

namespace cuvil::frontends::onnx {
namespace {

/// Integers of more elements than this are data, not shapes.
constexpr int64_t kMaxKnown = 64;

std::optional<KnownInts> known_of_constant(const ir::Tensor& t) {
  if (!is_int(t.type.dtype) && t.type.dtype != DType::boolean) return std::nullopt;
  if (t.type.rank() > 1) return std::nullopt;
  const int64_t n = num_elements(t.type.shape).value();
  if (n > kMaxKnown) return std::nullopt;
  KnownInts k{{}, t.type.rank() == 0, t.type.dtype};
  for (int64_t i = 0; i < n; ++i) k.values.emplace_back(t.as_int(i));
  return k;
}

/// AttributeProto.AttributeType of onnx.proto.
namespace kinds {
constexpr int32_t real = 1, integer = 2, string = 3, tensor = 4, reals = 6, integers = 7;
}

/// Known integers as a tensor value: a constant where all are numbers, else an operator that writes the sizes.
ir::Value* materialise(const KnownInts& known, ops::Builder& b, std::string_view name) {
  Shape shape;
  if (!known.scalar) shape.push_back(Dim(static_cast<int64_t>(known.values.size())));
  if (std::all_of(known.values.begin(), known.values.end(), [](const Dim& d) { return d.is_const(); })) {
    auto [tensor, bytes] = ir::Tensor::allocate({known.dtype, shape, {}});
    const auto size = static_cast<size_t>(size_of(known.dtype));
    for (size_t i = 0; i < known.values.size(); ++i) {
      const int64_t v = known.values[i].value();
      std::copy_n(reinterpret_cast<const uint8_t*>(&v), size, bytes + i * size);  // little-endian
    }
    return b.constant(tensor, name);
  }
  ir::Value* v = b.add("Sizes", {}, {{"values", Shape(known.values)}, {"shape", shape}}, name);
  return known.dtype == DType::i64 ? v : b.add("Cast", {v}, {{"to", known.dtype}});
}

}  // namespace

ir::Value* OpContext::in(size_t i) {
  if (!has(i)) malformed(std::string(proto.op_type) + " lacks its input " + std::to_string(i));
  auto it = scope_.find(proto.inputs[i]);
  if (it == scope_.end())
    malformed("input '" + std::string(proto.inputs[i]) + "' of " + std::string(proto.op_type) +
              " is not produced by any node before it");
  Entry& e = it->second;
  if (!e.value) e.value = materialise(*e.known, b, proto.inputs[i]);
  return e.value;
}

const Entry* OpContext::entry(size_t i) const {
  if (!has(i)) return nullptr;
  auto it = scope_.find(proto.inputs[i]);
  return it == scope_.end() ? nullptr : &it->second;
}

std::optional<KnownInts> OpContext::known(size_t i) const {
  const Entry* e = entry(i);
  if (!e) return std::nullopt;
  if (e->known) return e->known;
  const ir::Type& type = e->value->type;
  if (type.rank() > 1 || is_float(type.dtype) || !is_static(type.shape)) return std::nullopt;
  if (num_elements(type.shape).value() > kMaxKnown) return std::nullopt;
  if (const ir::Tensor* t = folder_.constant(e->value)) return known_of_constant(*t);
  return std::nullopt;
}

bool OpContext::from_shapes(size_t i) const {
  const Entry* e = entry(i);
  return e && e->known;
}

/// Input i has to be known and is not.
void OpContext::needs(size_t i, std::string_view what) const {
  if (const Entry* e = entry(i); e && e->value)
    if (NeedsValues n{folder_.inputs_of(e->value)}; !n.inputs.empty()) throw n;
  unsupported(std::string(proto.op_type) + ": " + std::string(what) +
              " must be constant or computed from shapes, here it depends on the data");
}

std::vector<Dim> OpContext::dims(size_t i, std::string_view what) const {
  if (std::optional<KnownInts> k = known(i)) return k->values;
  const ir::Tensor& t = tensor(i, what);
  if (is_float(t.type.dtype)) malformed(std::string(proto.op_type) + ": " + std::string(what) + " must be integers");
  std::vector<Dim> all;
  for (int64_t v : t.to_ints()) all.emplace_back(v);
  return all;
}

std::vector<int64_t> OpContext::ints(size_t i, std::string_view what) const {
  std::vector<int64_t> out;
  for (const Dim& d : dims(i, what)) {
    if (!d.is_const())
      unsupported(std::string(proto.op_type) + ": " + std::string(what) + " must be constant, here it is " + d.str());
    out.push_back(d.value());
  }
  return out;
}

const ir::Tensor* OpContext::constant(size_t i) const {
  if (!has(i)) return nullptr;
  auto it = scope_.find(proto.inputs[i]);
  return it == scope_.end() || !it->second.value ? nullptr : ir::constant_of(it->second.value);
}

const ir::Tensor& OpContext::tensor(size_t i, std::string_view what) const {
  if (!has(i)) malformed(std::string(proto.op_type) + " lacks its input " + std::to_string(i));
  const Entry* e = entry(i);
  if (const ir::Tensor* t = e && e->value ? folder_.constant(e->value) : nullptr) return *t;
  needs(i, what);
}

double OpContext::number(size_t i, std::string_view what) const {
  if (const Entry* e = entry(i); e && !e->value && e->known->values.size() == 1)
    if (const std::optional<int64_t> v = e->known->values[0].as_const()) return static_cast<double>(*v);
  const ir::Tensor& t = tensor(i, what);
  if (num_elements(t.type.shape) != Dim(1))
    malformed(std::string(proto.op_type) + ": " + std::string(what) + " must be one number");
  return t.as_double(0);
}

const ProtoAttribute* OpContext::attribute(std::string_view name) const {
  for (const ProtoAttribute& a : proto.attributes)
    if (a.name == name) return &a;
  return nullptr;
}

const ProtoAttribute* OpContext::attribute(std::string_view name, int32_t type) const {
  const ProtoAttribute* a = attribute(name);
  if (a && a->type != 0 && a->type != type)  // 0: not said, as before IR version 2
    malformed(std::string(proto.op_type) + ": attribute '" + std::string(name) + "' is of type " +
              std::to_string(a->type) + ", expected " + std::to_string(type) + " (AttributeProto.AttributeType)");
  return a;
}

int64_t OpContext::attr_int(std::string_view name, int64_t fallback) const {
  const ProtoAttribute* a = attribute(name, kinds::integer);
  return a ? a->i : fallback;
}

double OpContext::attr_float(std::string_view name, double fallback) const {
  const ProtoAttribute* a = attribute(name, kinds::real);
  return a ? static_cast<double>(a->f) : fallback;
}

std::string OpContext::attr_string(std::string_view name, std::string_view fallback) const {
  const ProtoAttribute* a = attribute(name, kinds::string);
  return std::string(a ? a->s : fallback);
}

std::vector<int64_t> OpContext::attr_ints(std::string_view name, std::vector<int64_t> fallback) const {
  const ProtoAttribute* a = attribute(name, kinds::integers);
  return a ? a->ints : std::move(fallback);
}

std::vector<double> OpContext::attr_floats(std::string_view name, std::vector<double> fallback) const {
  const ProtoAttribute* a = attribute(name, kinds::reals);
  if (!a) return fallback;
  return {a->floats.begin(), a->floats.end()};
}

std::optional<ir::Tensor> OpContext::attr_tensor(std::string_view name) const {
  const ProtoAttribute* a = attribute(name, kinds::tensor);
  if (!a || !a->tensor) return std::nullopt;
  return to_tensor(*a->tensor, source_, where);
}

int64_t OpContext::axis(int64_t value, int rank) const {
  if (value < -rank || value >= rank)
    malformed(std::string(proto.op_type) + ": axis " + std::to_string(value) + " does not fit rank " +
              std::to_string(rank));
  return value < 0 ? value + rank : value;
}

void OpContext::out(size_t i, ir::Value* value) {
  if (wants(i)) scope_[std::string(proto.outputs[i])] = Entry{value, std::nullopt};
}

void OpContext::out_known(size_t i, KnownInts known) {
  if (wants(i)) scope_[std::string(proto.outputs[i])] = Entry{nullptr, std::move(known)};
}

ir::Attributes OpContext::set_symbol(std::string_view stem, Dim upper) {
  // Names of the inputs' symbols are the user's; an underscore in front keeps these apart.
  return {{"sets", std::vector<std::string>{b.graph().fresh_name("_" + std::string(stem))}},
          {"upper", Shape{std::move(upper)}}};
}

MapFunction find_mapping(std::string_view op) {
  using Tables = std::span<const Mapping> (*)();
  static constexpr Tables kTables[] = {
      elementwise_mappings,     //
      shape_mappings,           //
      movement_mappings,        //
      neural_mappings,          //
      reduction_mappings,       //
      recurrent_mappings,       //
      attention_mappings,       //
      einsum_mappings,          //
      image_mappings,           //
      loss_mappings,            //
      normalization_mappings,   //
      signal_mappings,          //
      training_mappings,        //
      data_dependent_mappings,  //
      quantize_mappings,        //
  };
  for (const Tables table : kTables)
    for (const Mapping& m : table())
      if (m.op == op) return m.map;
  return nullptr;
}

}  // namespace cuvil::frontends::onnx
