#include "core/frontends/onnx/proto.h"

#include <protozero/pbf_reader.hpp>

#include "core/base/error.h"

namespace cuvil::frontends::onnx {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr int kMaxGraphDepth = 32;  // If/Loop bodies inside each other

/// A known field encoded as another type: protozero would read nonsense.
void expect(const pbf_reader& r, pbf_wire_type type) {
  if (r.wire_type() != type)
    throw_model_error("not an ONNX model, or a damaged one: field " + std::to_string(r.tag()) + " has the wrong type");
}

std::string_view text(pbf_reader& r) {
  expect(r, pbf_wire_type::length_delimited);
  const protozero::data_view v = r.get_view();
  return {v.data(), v.size()};
}

pbf_reader message(pbf_reader& r) {
  expect(r, pbf_wire_type::length_delimited);
  return r.get_message();
}

int64_t integer(pbf_reader& r) {
  expect(r, pbf_wire_type::varint);
  return r.get_int64();
}

float number(pbf_reader& r) {
  expect(r, pbf_wire_type::fixed32);
  return r.get_float();
}

/// A repeated number: packed or one by one, both are valid encodings.
template <class T, class Packed, class Single>
void append(pbf_reader& r, std::vector<T>& out, Packed packed, Single single, pbf_wire_type type) {
  if (r.wire_type() == pbf_wire_type::length_delimited) {
    for (auto v : (r.*packed)()) out.push_back(static_cast<T>(v));
  } else {
    expect(r, type);
    out.push_back(static_cast<T>((r.*single)()));
  }
}
void append(pbf_reader& r, std::vector<int64_t>& out) {
  append(r, out, &pbf_reader::get_packed_int64, &pbf_reader::get_int64, pbf_wire_type::varint);
}
void append(pbf_reader& r, std::vector<int32_t>& out) {
  append(r, out, &pbf_reader::get_packed_int64, &pbf_reader::get_int64, pbf_wire_type::varint);
}
void append(pbf_reader& r, std::vector<uint64_t>& out) {
  append(r, out, &pbf_reader::get_packed_uint64, &pbf_reader::get_uint64, pbf_wire_type::varint);
}
void append(pbf_reader& r, std::vector<float>& out) {
  append(r, out, &pbf_reader::get_packed_float, &pbf_reader::get_float, pbf_wire_type::fixed32);
}
void append(pbf_reader& r, std::vector<double>& out) {
  append(r, out, &pbf_reader::get_packed_double, &pbf_reader::get_double, pbf_wire_type::fixed64);
}

std::pair<std::string_view, std::string_view> string_entry(pbf_reader r) {
  std::pair<std::string_view, std::string_view> e;
  while (r.next()) {
    if (r.tag() == 1)
      e.first = text(r);
    else if (r.tag() == 2)
      e.second = text(r);
    else
      r.skip();
  }
  return e;
}

ProtoTensor tensor(pbf_reader r) {
  ProtoTensor t;
  while (r.next()) switch (r.tag()) {
      case 1:
        append(r, t.dims);
        break;
      case 2:
        t.data_type = static_cast<int32_t>(integer(r));
        break;
      case 4:
        append(r, t.floats);
        break;
      case 5:
        append(r, t.ints32);
        break;
      case 6:
        t.strings.push_back(text(r));
        break;
      case 7:
        append(r, t.ints64);
        break;
      case 8:
        t.name = text(r);
        break;
      case 9:
        t.raw = text(r);
        break;
      case 10:
        append(r, t.doubles);
        break;
      case 11:
        append(r, t.uints64);
        break;
      case 13:
        t.external_data.insert(string_entry(message(r)));
        break;
      case 14:
        t.external = static_cast<int32_t>(integer(r)) == 1;
        break;
      default:
        r.skip();
    }
  return t;
}

ProtoGraph graph(pbf_reader r, int depth);

ProtoAttribute attribute(pbf_reader r, int depth) {
  ProtoAttribute a;
  while (r.next()) switch (r.tag()) {
      case 1:
        a.name = text(r);
        break;
      case 2:
        a.f = number(r);
        break;
      case 3:
        a.i = integer(r);
        break;
      case 4:
        a.s = text(r);
        break;
      case 5:
        a.tensor = tensor(message(r));
        break;
      case 6:
      case 11:
        a.graphs.push_back(graph(message(r), depth + 1));
        break;
      case 7:
        append(r, a.floats);
        break;
      case 8:
        append(r, a.ints);
        break;
      case 9:
        a.strings.push_back(text(r));
        break;
      case 20:
        a.type = static_cast<int32_t>(integer(r));
        break;
      case 21:
        a.ref_name = text(r);
        break;
      default:
        r.skip();
    }
  return a;
}

ProtoNode node(pbf_reader r, int depth) {
  ProtoNode n;
  while (r.next()) switch (r.tag()) {
      case 1:
        n.inputs.push_back(text(r));
        break;
      case 2:
        n.outputs.push_back(text(r));
        break;
      case 3:
        n.name = text(r);
        break;
      case 4:
        n.op_type = text(r);
        break;
      case 5:
        n.attributes.push_back(attribute(message(r), depth));
        break;
      case 7:
        n.domain = text(r);
        break;
      case 9:
        n.metadata.insert(string_entry(message(r)));
        break;
      default:
        r.skip();
    }
  if (n.domain == "ai.onnx") n.domain = "";
  return n;
}

ProtoDim dimension(pbf_reader r) {
  ProtoDim d;
  while (r.next()) {
    if (r.tag() == 1)
      d.value = integer(r);
    else if (r.tag() == 2)
      d.param = text(r);
    else
      r.skip();
  }
  return d;
}

void tensor_type(pbf_reader r, ProtoValueInfo& v) {
  v.is_tensor = true;
  while (r.next()) {
    if (r.tag() == 1) {
      v.elem_type = static_cast<int32_t>(integer(r));
    } else if (r.tag() == 2) {
      v.has_shape = true;
      pbf_reader shape = message(r);
      while (shape.next()) {
        if (shape.tag() == 1)
          v.dims.push_back(dimension(message(shape)));
        else
          shape.skip();
      }
    } else {
      r.skip();
    }
  }
}

ProtoValueInfo value_info(pbf_reader r) {
  ProtoValueInfo v;
  while (r.next()) {
    if (r.tag() == 1) {
      v.name = text(r);
    } else if (r.tag() == 2) {
      pbf_reader type = message(r);
      while (type.next()) {
        if (type.tag() == 1)
          tensor_type(message(type), v);
        else
          type.skip();
      }
    } else {
      r.skip();
    }
  }
  return v;
}

ProtoGraph graph(pbf_reader r, int depth) {
  if (depth > kMaxGraphDepth) throw_model_error("graphs are nested more than 32 deep");
  ProtoGraph g;
  while (r.next()) switch (r.tag()) {
      case 1:
        g.nodes.push_back(node(message(r), depth));
        break;
      case 2:
        g.name = text(r);
        break;
      case 5:
        g.initializers.push_back(tensor(message(r)));
        break;
      case 11:
        g.inputs.push_back(value_info(message(r)));
        break;
      case 12:
        g.outputs.push_back(value_info(message(r)));
        break;
      case 15:
        g.has_sparse_initializers = true;
        r.skip();
        break;
      default:
        r.skip();
    }
  return g;
}

void opset(pbf_reader r, std::map<std::string_view, int64_t>& out) {
  std::string_view domain;
  int64_t version = 0;
  while (r.next()) {
    if (r.tag() == 1)
      domain = text(r);
    else if (r.tag() == 2)
      version = integer(r);
    else
      r.skip();
  }
  out[domain == "ai.onnx" ? "" : domain] = version;
}

ProtoFunction function(pbf_reader r) {
  ProtoFunction f;
  while (r.next()) switch (r.tag()) {
      case 1:
        f.name = text(r);
        break;
      case 4:
        f.inputs.push_back(text(r));
        break;
      case 5:
        f.outputs.push_back(text(r));
        break;
      case 6:
        f.attributes.push_back(text(r));
        break;
      case 7:
        f.nodes.push_back(node(message(r), 0));
        break;
      case 9:
        opset(message(r), f.opsets);
        break;
      case 10:
        f.domain = text(r);
        break;
      case 11:
        f.attribute_defaults.push_back(attribute(message(r), 0));
        break;
      default:
        r.skip();
    }
  return f;
}

}  // namespace

ProtoModel decode(std::string_view bytes) {
  ProtoModel m;
  try {
    pbf_reader r(bytes.data(), bytes.size());
    while (r.next()) switch (r.tag()) {
        case 1:
          m.ir_version = integer(r);
          break;
        case 2:
          m.producer = text(r);
          break;
        case 7:
          m.graph = graph(message(r), 0);
          m.has_graph = true;
          break;
        case 8:
          opset(message(r), m.opsets);
          break;
        case 25:
          m.functions.push_back(function(message(r)));
          break;
        default:
          r.skip();
      }
  } catch (const protozero::exception& e) {
    throw_model_error(std::string("not an ONNX model, or a damaged one: the protobuf cannot be read (") + e.what() +
                      "); export or copy the file again");
  }
  if (!m.has_graph) throw_model_error("not an ONNX model: it holds no graph");
  return m;
}

}  // namespace cuvil::frontends::onnx
