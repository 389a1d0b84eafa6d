// NonMaxSuppression (ONNX): of boxes [batch, n, 4] and scores [batch, classes, n] the best of each class whose overlap
// with better ones is at most a threshold, as rows (batch, class, box) of i64, best first in each class; the last
// output is room for the order, i64 [n]. Sets one symbol, the number of rows.
// Source: https://onnx.ai/onnx/operators/onnx__NonMaxSuppression.html
#include "runtime/error.h"
#include "runtime/host_ops/attributes.h"
#include "runtime/host_ops/host_op.h"

namespace cuvil::runtime {

namespace {

const char* check(const HostTensor* inputs, const HostTensor* outputs) {
  if (inputs[0].dtype != CUVIL_F32 || inputs[1].dtype != CUVIL_F32 || inputs[0].ndim != 3 || inputs[1].ndim != 3)
    return "boxes and scores are not f32 with 3 dimensions";
  if (inputs[2].dtype != CUVIL_I64 || inputs[2].ndim != 0) return "the number of boxes is no i64";
  for (int i = 3; i < 5; ++i)
    if (inputs[i].dtype != CUVIL_F32 || inputs[i].ndim != 0) return "a threshold is no f32";
  if (outputs[0].dtype != CUVIL_I64 || outputs[0].ndim != 2) return "the output is not i64 with 2 dimensions";
  return outputs[1].dtype == CUVIL_I64 && outputs[1].ndim == 1 ? nullptr : "the workspace is not i64 [n]";
}

struct Box {
  float y1, x1, y2, x2;
  float area() const { return (y2 - y1) * (x2 - x1); }
};

/// Corners may come in any order; with `center` a box is x, y, width, height.
Box box_of(const float* p, bool center) {
  if (center) return {p[1] - p[3] / 2, p[0] - p[2] / 2, p[1] + p[3] / 2, p[0] + p[2] / 2};
  const bool y = p[0] > p[2], x = p[1] > p[3];
  return {p[y ? 2 : 0], p[x ? 3 : 1], p[y ? 0 : 2], p[x ? 1 : 3]};
}

float overlap(const Box& a, const Box& b) {
  const float y1 = a.y1 > b.y1 ? a.y1 : b.y1, x1 = a.x1 > b.x1 ? a.x1 : b.x1;
  const float y2 = a.y2 < b.y2 ? a.y2 : b.y2, x2 = a.x2 < b.x2 ? a.x2 : b.x2;
  const float area_a = a.area(), area_b = b.area();
  if (area_a <= 0 || area_b <= 0 || y2 <= y1 || x2 <= x1) return 0;
  const float both = (y2 - y1) * (x2 - x1);
  return both / (area_a + area_b - both);
}

/// Below comes what has the better score; of equal ones the first.
void sift(const float* scores, int64_t* heap, int64_t root, int64_t n) {
  const auto before = [&](int64_t i, int64_t j) { return scores[i] != scores[j] ? scores[i] > scores[j] : i < j; };
  for (;;) {
    int64_t best = root;
    for (int64_t child = 2 * root + 1; child <= 2 * root + 2 && child < n; ++child)
      if (before(heap[child], heap[best])) best = child;
    if (best == root) return;
    const int64_t kept = heap[root];
    heap[root] = heap[best];
    heap[best] = kept;
    root = best;
  }
}

cuvil_status run(const HostCall& call) {
  const HostTensor &boxes = call.inputs[0], &scores = call.inputs[1];
  const int64_t batch = boxes.dims[0], n = boxes.dims[1], classes = scores.dims[1];
  if (boxes.dims[2] != 4 || scores.dims[0] != batch || scores.dims[2] != n || call.outputs[1].dims[0] < n ||
      call.outputs[0].dims[1] != 3)
    return fail(CUVIL_SHAPE_ERROR, "NonMaxSuppression: the shapes of boxes and scores do not fit");
  const int64_t most = *static_cast<const int64_t*>(call.inputs[2].data);
  const float limit = *static_cast<const float*>(call.inputs[3].data);
  const float least = *static_cast<const float*>(call.inputs[4].data);
  const bool center = int_attribute(*call.step, "center_point_box", 0) != 0;
  auto* rows = static_cast<int64_t*>(call.outputs[0].data);
  auto* heap = static_cast<int64_t*>(call.outputs[1].data);
  int64_t count = 0;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t c = 0; c < classes; ++c) {
      const float* all = static_cast<const float*>(boxes.data) + b * n * 4;
      const float* score = static_cast<const float*>(scores.data) + (b * classes + c) * n;
      int64_t open = 0;
      for (int64_t i = 0; i < n; ++i)
        if (score[i] > least) heap[open++] = i;
      for (int64_t i = open / 2; i-- > 0;) sift(score, heap, i, open);
      int64_t picked = 0;
      int64_t* mine = rows + 3 * count;
      while (open > 0 && picked < most) {
        const int64_t best = heap[0];
        heap[0] = heap[--open];
        sift(score, heap, 0, open);
        const Box box = box_of(all + 4 * best, center);
        bool apart = true;
        for (int64_t k = 0; k < picked && apart; ++k)
          apart = overlap(box, box_of(all + 4 * mine[3 * k + 2], center)) <= limit;
        if (!apart) continue;
        if (count >= call.limits[0])
          return fail(CUVIL_INTERNAL_ERROR, "NonMaxSuppression: more boxes than the planned %lld",
                      static_cast<long long>(call.limits[0]));
        mine[3 * picked] = b;
        mine[3 * picked + 1] = c;
        mine[3 * picked + 2] = best;
        ++picked;
        ++count;
      }
    }
  call.symbols[0] = count;
  return CUVIL_OK;
}

}  // namespace

const HostOperator kNonMaxSuppression = {"NonMaxSuppression", 5, 2, 1, check, run};

}  // namespace cuvil::runtime
