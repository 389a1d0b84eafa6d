// The parts of ONNX's protobuf schema that the importer reads, decoded in place: strings and raw tensor data are views
// into the model's bytes, which must outlive them. Field numbers: onnx.proto of ONNX 1.x.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cuvil::frontends::onnx {

struct ProtoTensor {
  std::string_view name;
  int32_t data_type = 0;  ///< TensorProto.DataType
  std::vector<int64_t> dims;
  std::optional<std::string_view> raw;
  std::vector<float> floats;
  std::vector<int32_t> ints32;
  std::vector<int64_t> ints64;
  std::vector<double> doubles;
  std::vector<uint64_t> uints64;
  std::vector<std::string_view> strings;
  bool external = false;
  std::map<std::string_view, std::string_view> external_data;  ///< location, offset, length
};

struct ProtoGraph;

struct ProtoAttribute {
  std::string_view name, ref_name;
  int32_t type = 0;  ///< AttributeProto.AttributeType
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  std::optional<ProtoTensor> tensor;
  std::vector<ProtoGraph> graphs;  ///< g or graphs
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
};

struct ProtoNode {
  std::string_view name, op_type, domain;
  std::vector<std::string_view> inputs, outputs;
  std::vector<ProtoAttribute> attributes;
  std::map<std::string_view, std::string_view> metadata;
};

struct ProtoDim {
  std::optional<int64_t> value;
  std::string_view param;
};

struct ProtoValueInfo {
  std::string_view name;
  bool is_tensor = false;
  int32_t elem_type = 0;
  bool has_shape = false;
  std::vector<ProtoDim> dims;
};

struct ProtoGraph {
  std::string_view name;
  std::vector<ProtoNode> nodes;
  std::vector<ProtoTensor> initializers;
  std::vector<ProtoValueInfo> inputs, outputs;
  bool has_sparse_initializers = false;
};

struct ProtoFunction {
  std::string_view name, domain;
  std::vector<std::string_view> inputs, outputs, attributes;
  std::vector<ProtoAttribute> attribute_defaults;
  std::vector<ProtoNode> nodes;
  std::map<std::string_view, int64_t> opsets;
};

struct ProtoModel {
  int64_t ir_version = 0;
  std::string_view producer;
  std::map<std::string_view, int64_t> opsets;  ///< domain -> version; "" is ai.onnx
  ProtoGraph graph;
  bool has_graph = false;
  std::vector<ProtoFunction> functions;
};

/// Decodes a model. Throws ModelError for bytes that are not a protobuf of this schema; nesting of graphs is bounded.
ProtoModel decode(std::string_view bytes);

}  // namespace cuvil::frontends::onnx
