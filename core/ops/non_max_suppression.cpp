#include "core/ops/define.h"

namespace cuvil::ops {

OpDef define_non_max_suppression() {
  OpDef d;
  d.name = "NonMaxSuppression";
  d.doc =
      "The best boxes of each class that overlap better ones at most by a threshold (ONNX NonMaxSuppression), best "
      "first "
      "in each class. Sets one symbol, their number; its bound is up to who makes the node.";
  d.inputs = {{"boxes", "f32 [batch, n, 4]: two corners, y before x"},
              {"scores", "f32 [batch, classes, n]"},
              {"most", "i64 scalar: boxes of one class at most"},
              {"overlap", "f32 scalar: intersection over union at most"},
              {"least", "f32 scalar: only higher scores count"}};
  d.outputs = {{"selected", "i64 [number, 3]: batch, class and box"}, {"order", "i64 [n]: room for the work"}};
  d.attributes = set_symbols();
  d.attributes.push_back(
      optional("center_point_box", AttrKind::integer, "1: boxes are center x, y, width, height", int64_t{0}));
  d.traits = kHost | kDataDependent | kPure;
  d.dtypes = {DType::f32};
  d.host = "NonMaxSuppression";
  d.infer = [](const InferContext& c) {
    same_dtype(c, 1);
    for (size_t i = 0; i < 5; ++i) need_rank(c, i, i < 2 ? 3 : 0);
    need_dtype(c, 2, DType::i64);
    same_dtype(c, 3);
    same_dtype(c, 4);
    const Shape &boxes = c.in(0).shape, &scores = c.in(1).shape;
    c.require_equal(boxes[0], scores[0], "batch sizes");
    c.require_equal(boxes[1], scores[2], "numbers of boxes");
    c.require_equal(boxes[2], 4, "coordinates of a box");
    const Dim count = symbol_of(c);
    return std::vector<ir::Type>{i64({count, 3}), i64({boxes[1]})};
  };
  return d;
}

}  // namespace cuvil::ops
