#include "core/ops/indexing.h"
#include "core/ops/loops.h"
#include "core/ops/window.h"

namespace cuvil::ops {
namespace {

using kernel::Expr;
using kernel::make;
using kernel::Op;

/// One axis of a region: where its bins lie, and how many samples each has.
struct RoiAxis {
  Expr start, bin, samples, size;  ///< size: of the image, as a float
};

class RoiLowering {
 public:
  explicit RoiLowering(LowerContext& c)
      : c_(c), type_{accumulator_type(c.in_type(0).dtype), 1}, half_pixel_(c.node().attr<int64_t>("half_pixel") != 0) {}

  void run() {
    Walk walk;
    walk.grain = 64;
    walk.max_lanes = 1;
    for_each(c_, c_.out_memory().type(), walk, [&](const Coords& at) { c_.store(at, bin(at)); });
  }

 private:
  Expr number(double v) const { return kernel::constant(type_, v); }
  Expr real(const Expr& i) const { return kernel::cast(type_, i); }

  /// `axis` of the image, 0 or 1: its coordinates stand at 1 - axis and 3 - axis of a region.
  RoiAxis axis_of_region(const Expr& roi, int axis) {
    const double scale = c_.node().attr<double>("spatial_scale");
    const auto edge = [&](int i) {
      return real(c_.load(1, {roi, Expr(i)})) * number(scale) - number(half_pixel_ ? 0.5 : 0);
    };
    RoiAxis r;
    r.start = c_.b().let("start", edge(1 - axis));
    Expr length = edge(3 - axis) - r.start;
    if (!half_pixel_) length = kernel::max(length, number(1));
    length = c_.b().let("length", length);
    const size_t a = static_cast<size_t>(axis + 2);
    const Expr bins = real(c_.dim(c_.out_type().shape[a]));
    r.bin = c_.b().let("bin", length / bins);
    const int64_t ratio = c_.node().attr<int64_t>("sampling_ratio");
    // A region without extent has no samples.
    const Expr adaptive = kernel::max(kernel::cast({DType::i64, 1}, make(Op::ceil, {r.bin})), Expr(0));
    r.samples = ratio > 0 ? Expr(ratio) : c_.b().let("samples", adaptive);
    r.size = real(c_.dim(c_.in_type(0).shape[a]));
    return r;
  }

  struct Sample1 {
    Expr inside, low, high, low_weight, high_weight;
  };
  Sample1 sample(const RoiAxis& r, const Expr& bin, const Expr& i) {
    const Expr at = r.start + real(bin) * r.bin + (real(i) + number(0.5)) * r.bin / real(r.samples);
    const Expr x = c_.b().let("x", at);
    Sample1 s;
    s.inside = (x >= number(-1)) & (x <= r.size);
    const Expr last = r.size - number(1), p = kernel::max(x, number(0));
    const Expr floor = kernel::min(make(Op::floor, {p}), last);
    const Expr rest = c_.b().let("rest", kernel::select(p >= last, number(0), p - floor));
    const auto index = [&](const Expr& v) {
      const Expr n = kernel::cast({DType::i64, 1}, r.size);
      return c_.b().let("i", kernel::max(kernel::min(kernel::cast({DType::i64, 1}, v), n - Expr(1)), Expr(0)));
    };
    s.low = index(floor);
    s.high = index(floor + number(1));
    s.low_weight = number(1) - rest;
    s.high_weight = rest;
    return s;
  }

  Expr bin(const Coords& at) {
    const bool average = c_.node().attr<std::string>("mode") == "avg";
    const Expr roi = at.index[0];
    const Expr image = checked_index(c_, c_.load(2, {roi}), c_.dim(c_.in_type(0).shape[0]));
    const RoiAxis rows = axis_of_region(roi, 0), columns = axis_of_region(roi, 1);
    Register total(c_.b(), "total", number(0));
    Register first(c_.b(), "first", Expr(1));
    c_.b().loop("iy", rows.samples, [&](Expr iy) {
      const Sample1 y = sample(rows, at.index[2], iy);
      c_.b().loop("ix", columns.samples, [&](Expr ix) {
        const Sample1 x = sample(columns, at.index[3], ix);
        const auto tap = [&](const Expr& i, const Expr& j, const Expr& w) {
          Coords from{{image, at.index[1], i, j}};
          return c_.b().let("tap", w * real(c_.load(0, from.only(y.inside & x.inside))));
        };
        const Expr a = tap(y.low, x.low, y.low_weight * x.low_weight);
        const Expr b = tap(y.low, x.high, y.low_weight * x.high_weight);
        const Expr c = tap(y.high, x.low, y.high_weight * x.low_weight);
        const Expr d = tap(y.high, x.high, y.high_weight * x.high_weight);
        if (average) {
          total.set(total.get() + (a + b + c + d));
        } else {
          const Expr most = c_.b().let("most", kernel::max(kernel::max(a, b), kernel::max(c, d)));
          total.set(kernel::select(first.get() == Expr(1), most, kernel::max(total.get(), most)));
          first.set(Expr(0));
        }
      });
    });
    if (!average) return total.get();
    return total.get() / real(kernel::max(rows.samples * columns.samples, Expr(1)));
  }

  LowerContext& c_;
  kernel::Type type_;
  bool half_pixel_;
};

}  // namespace

OpDef define_roi_align() {
  OpDef d;
  d.name = "RoiAlign";
  d.doc =
      "Each region of its image as a grid of bins, each the mean (or the largest) of bilinear samples (ONNX RoiAlign; "
      "He and others, Mask R-CNN, 2017). Samples more than 1 outside count 0.";
  d.inputs = {{"x", "[N, C, H, W]"}, {"rois", "[R, 4]: x and y of two corners"}, {"batch_indices", "i64 or i32 [R]"}};
  d.outputs = {{"y", "[R, C, output_height, output_width]"}};
  d.attributes = {optional("mode", AttrKind::string, "avg, or max: of the four weighted elements of every sample",
                           std::string("avg")),
                  optional("output_height", AttrKind::integer, "bins", int64_t{1}),
                  optional("output_width", AttrKind::integer, "bins", int64_t{1}),
                  optional("sampling_ratio", AttrKind::integer,
                           "samples per bin and axis; 0: as many as it has elements", int64_t{0}),
                  optional("spatial_scale", AttrKind::real, "from coordinates to elements", 1.0),
                  optional("half_pixel", AttrKind::integer,
                           "1: elements' centres lie at halves; 0: regions are at least 1 wide", int64_t{1})};
  d.traits = kPure | kEpilogueOk;
  d.dtypes = real_dtypes();
  d.infer = [](const InferContext& c) {
    need_rank(c, 0, 4);
    need_rank(c, 1, 2);
    need_rank(c, 2, 1);
    same_dtype(c, 1);
    need_index(c, 2);
    c.require_equal(c.in(1).shape[1], Dim(4), "coordinates of a region");
    c.require_equal(c.in(1).shape[0], c.in(2).shape[0], "regions");
    const int64_t h = c.node.attr<int64_t>("output_height"), w = c.node.attr<int64_t>("output_width");
    if (h < 1 || w < 1 || c.node.attr<int64_t>("sampling_ratio") < 0) c.fail("sizes must be positive");
    const std::string& mode = c.node.attr<std::string>("mode");
    if (mode != "avg" && mode != "max") c.fail("mode must be avg or max");
    return std::vector<ir::Type>{{c.in(0).dtype, {c.in(1).shape[0], c.in(0).shape[1], Dim(h), Dim(w)}, {}}};
  };
  d.lower = [](LowerContext& c) { RoiLowering(c).run(); };
  d.flops = [](const ir::Node& n) { return Dim(64) * num_elements(n.output()->type.shape); };
  d.samples = [] {
    const auto bins = [](int64_t n, int64_t ratio, std::string mode, int64_t half_pixel) {
      return ir::Attributes{{"output_height", n},
                            {"output_width", n},
                            {"sampling_ratio", ratio},
                            {"mode", std::move(mode)},
                            {"half_pixel", half_pixel}};
    };
    const std::vector<double> square = {1, 2, 3, 4}, region = {0, 0, 1, 1};
    return std::vector<Sample>{
        {"by_hand", {f32({1, 1, 2, 2}), f32({1, 4}), i64({1})}, bins(1, 1, "avg", 0), {square, region, {0}}, {2.5}},
        {"two",
         {f32({1, 1, 2, 2}), f32({1, 4}), i64({1})},
         bins(2, 1, "avg", 0),
         {square, region, {0}},
         {1.75, 2.25, 2.75, 3.25}},
        {"adaptive",
         {f32({2, 3, 9, 7}), f32({2, 4}), i64({2})},
         bins(3, 0, "avg", 1),
         {{}, {1, 2, 6, 7.5, -1, 0.5, 4, 11}, {1, 0}}},
        {"max",
         {f32({2, 3, 9, 7}), f32({2, 4}), i64({2})},
         bins(3, 2, "max", 1),
         {{}, {1, 2, 6, 7.5, 0, 0, 4, 4}, {1, 0}}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
