#include "core/frontends/onnx/proto.h"

#include <protozero/pbf_reader.hpp>

#include "core/base/error.h"

namespace cuvil::frontends::onnx {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr int kMaxGraphDepth = 32;  // If/Loop bodies inside each other

std::string_view text(pbf_reader& r) {
  const protozero::data_view v = r.get_view();
  return {v.data(), v.size()};
}

/// A repeated number: packed or one by one, both are valid encodings.
template <class T, class Packed, class Single>
void append(pbf_reader& r, std::vector<T>& out, Packed packed, Single single) {
  if (r.wire_type() == pbf_wire_type::length_delimited) {
    for (auto v : (r.*packed)()) out.push_back(static_cast<T>(v));
  } else {
    out.push_back(static_cast<T>((r.*single)()));
  }
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
        append(r, t.dims, &pbf_reader::get_packed_int64, &pbf_reader::get_int64);
        break;
      case 2:
        t.data_type = r.get_int32();
        break;
      case 4:
        append(r, t.floats, &pbf_reader::get_packed_float, &pbf_reader::get_float);
        break;
      case 5:
        append(r, t.ints32, &pbf_reader::get_packed_int32, &pbf_reader::get_int32);
        break;
      case 6:
        t.strings.push_back(text(r));
        break;
      case 7:
        append(r, t.ints64, &pbf_reader::get_packed_int64, &pbf_reader::get_int64);
        break;
      case 8:
        t.name = text(r);
        break;
      case 9:
        t.raw = text(r);
        break;
      case 10:
        append(r, t.doubles, &pbf_reader::get_packed_double, &pbf_reader::get_double);
        break;
      case 11:
        append(r, t.uints64, &pbf_reader::get_packed_uint64, &pbf_reader::get_uint64);
        break;
      case 13:
        t.external_data.insert(string_entry(r.get_message()));
        break;
      case 14:
        t.external = r.get_enum() == 1;
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
        a.f = r.get_float();
        break;
      case 3:
        a.i = r.get_int64();
        break;
      case 4:
        a.s = text(r);
        break;
      case 5:
        a.tensor = tensor(r.get_message());
        break;
      case 6:
      case 11:
        a.graphs.push_back(graph(r.get_message(), depth + 1));
        break;
      case 7:
        append(r, a.floats, &pbf_reader::get_packed_float, &pbf_reader::get_float);
        break;
      case 8:
        append(r, a.ints, &pbf_reader::get_packed_int64, &pbf_reader::get_int64);
        break;
      case 9:
        a.strings.push_back(text(r));
        break;
      case 20:
        a.type = r.get_enum();
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
        n.attributes.push_back(attribute(r.get_message(), depth));
        break;
      case 7:
        n.domain = text(r);
        break;
      case 9:
        n.metadata.insert(string_entry(r.get_message()));
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
      d.value = r.get_int64();
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
      v.elem_type = r.get_int32();
    } else if (r.tag() == 2) {
      v.has_shape = true;
      pbf_reader shape = r.get_message();
      while (shape.next()) {
        if (shape.tag() == 1)
          v.dims.push_back(dimension(shape.get_message()));
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
      pbf_reader type = r.get_message();
      while (type.next()) {
        if (type.tag() == 1)
          tensor_type(type.get_message(), v);
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
        g.nodes.push_back(node(r.get_message(), depth));
        break;
      case 2:
        g.name = text(r);
        break;
      case 5:
        g.initializers.push_back(tensor(r.get_message()));
        break;
      case 11:
        g.inputs.push_back(value_info(r.get_message()));
        break;
      case 12:
        g.outputs.push_back(value_info(r.get_message()));
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
      version = r.get_int64();
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
        f.nodes.push_back(node(r.get_message(), 0));
        break;
      case 9:
        opset(r.get_message(), f.opsets);
        break;
      case 10:
        f.domain = text(r);
        break;
      case 11:
        f.attribute_defaults.push_back(attribute(r.get_message(), 0));
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
          m.ir_version = r.get_int64();
          break;
        case 2:
          m.producer = text(r);
          break;
        case 7:
          m.graph = graph(r.get_message(), 0);
          m.has_graph = true;
          break;
        case 8:
          opset(r.get_message(), m.opsets);
          break;
        case 25:
          m.functions.push_back(function(r.get_message()));
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
