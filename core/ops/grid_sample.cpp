#include "core/ops/define.h"
#include "core/ops/loops.h"
#include "core/ops/window.h"

namespace cuvil::ops {
namespace {

using kernel::Expr;
using kernel::make;
using kernel::Op;

/// One axis of one output position: how coordinates meet elements.
class GridAxis {
 public:
  GridAxis(LowerContext& c, DType wide, const Expr& size)
      : c_(c), wide_(wide), size_(size), length_(kernel::cast({wide, 1}, size)) {
    const ir::Node& n = c.node();
    padding_ = n.attr<std::string>("padding");
    corners_ = n.attr<int64_t>("align_corners") != 0;
    low_ = real(corners_ ? 0 : -0.5);
    high_ = length_ - real(corners_ ? 1 : 0.5);
  }

  Expr real(double v) const { return kernel::constant({wide_, 1}, v); }

  /// [-1, 1] as a position; what is outside is drawn in as the padding says.
  Expr position(const Expr& g, bool rounded) const {
    Expr x =
        corners_ ? (g + real(1)) * real(0.5) * (length_ - real(1)) : ((g + real(1)) * length_ - real(1)) * real(0.5);
    if (rounded) x = make(Op::round, {x});
    x = c_.b().let("x", x);
    if (padding_ == "zeros") return x;
    // Only what lies outside is moved: cubic taps tell a position beside the first element from one on it.
    return c_.b().let("x",
                      kernel::select((x < low_) | (x > high_), padding_ == "border" ? clamped(x) : reflected(x), x));
  }

  struct Tap {
    Expr index, inside;  ///< inside: null where it always is
  };
  /// The element at a whole position, which may be outside.
  Tap tap(const Expr& p) const {
    Tap t;
    Expr x = p;
    if (padding_ == "zeros") t.inside = (p >= real(0)) & (p <= length_ - real(1));
    if (padding_ == "reflection") x = kernel::select((p < low_) | (p > high_), reflected(p), p);
    const Expr i = kernel::cast({DType::i64, 1}, x);  // saturates; a NaN becomes 0
    t.index = c_.b().let("i", kernel::max(kernel::min(i, size_ - Expr(1)), Expr(0)));
    return t;
  }

 private:
  Expr clamped(const Expr& x) const { return c_.b().let("x", kernel::max(kernel::min(x, length_ - real(1)), real(0))); }
  /// Back and forth between the borders.
  Expr reflected(const Expr& x) const {
    const Expr range = high_ - low_, d = c_.b().let("d", kernel::max(x - low_, low_ - x));
    const Expr turns = c_.b().let("turns", make(Op::floor, {d / range}));
    const Expr rest = d - turns * range, odd = turns - real(2) * make(Op::floor, {turns * real(0.5)});
    return c_.b().let(
        "r", kernel::select(range > real(0), kernel::select(odd < real(0.5), low_ + rest, high_ - rest), low_));
  }

  LowerContext& c_;
  DType wide_;
  Expr size_, length_, low_, high_;
  std::string padding_;
  bool corners_ = false;
};

struct WeightedTap {
  GridAxis::Tap tap;
  Expr weight;  ///< null: 1
};

/// Keys' cubic convolution with a = -0.75 at distance t behind the second of four taps.
std::vector<Expr> grid_cubic_weights(const GridAxis& axis, const Expr& t) {
  constexpr double a = -0.75;
  const auto r = [&](double v) { return axis.real(v); };
  const Expr u = t + r(1), v = r(1) - t, w = r(2) - t;
  const auto far = [&](const Expr& d) { return ((r(a) * d - r(5 * a)) * d + r(8 * a)) * d - r(4 * a); };
  const auto near = [&](const Expr& d) { return (r(a + 2) * d - r(a + 3)) * d * d + r(1); };
  return {far(u), near(t), near(v), far(w)};
}

std::vector<WeightedTap> taps_of(LowerContext& c, const GridAxis& axis, const Expr& g, const std::string& mode) {
  const Expr x = axis.position(g, mode == "nearest");
  if (mode == "nearest") return {{axis.tap(x), {}}};
  const Expr first = c.b().let("first", make(Op::floor, {x})), t = c.b().let("t", x - first);
  std::vector<WeightedTap> taps;
  std::vector<Expr> weights = {axis.real(1) - t, t};
  if (mode == "cubic") weights = grid_cubic_weights(axis, t);
  for (size_t k = 0; k < weights.size(); ++k)
    taps.push_back(
        {axis.tap(first + axis.real(static_cast<double>(k) - (mode == "cubic" ? 1 : 0))), c.b().let("w", weights[k])});
  return taps;
}

std::vector<ir::Type> infer_grid_sample(const InferContext& c) {
  const int rank = c.in(0).rank();
  if (rank < 3 || rank > 5) c.fail("x has 1, 2 or 3 axes behind batch and channels");
  need_rank(c, 1, rank);
  if (!is_float(c.in(1).dtype)) c.fail("the grid must be of floats");
  c.require_equal(c.in(0).shape[0], c.in(1).shape[0], "batch");
  c.require_equal(c.in(1).shape.back(), Dim(rank - 2), "coordinates of the grid");
  const ir::Node& n = c.node;
  const std::string &mode = n.attr<std::string>("mode"), &padding = n.attr<std::string>("padding");
  if (mode != "nearest" && mode != "linear" && mode != "cubic") c.fail("mode must be nearest, linear or cubic");
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    c.fail("padding must be zeros, border or reflection");
  if (mode == "cubic" && rank == 5) throw_unsupported("GridSample of volumes by cubic interpolation", n.location);
  Shape shape{c.in(0).shape[0], c.in(0).shape[1]};
  for (int a = 2; a < rank; ++a) {
    if (c.in(0).shape[static_cast<size_t>(a)] == Dim(0)) c.fail("there is nothing to sample");
    shape.push_back(c.in(1).shape[static_cast<size_t>(a - 1)]);
  }
  return {{c.in(0).dtype, shape, {}}};
}

void lower_grid_sample(LowerContext& c) {
  const int rank = c.out_type().rank();
  const DType wide = accumulator_type(c.in_type(0).dtype);
  const std::string& mode = c.node().attr<std::string>("mode");
  Walk walk;
  walk.grain = 512;
  walk.max_lanes = 1;
  for_each(c, c.out_memory().type(), walk, [&](const Coords& at) {
    std::vector<std::vector<WeightedTap>> taps;  // per axis of the image
    for (int a = 2; a < rank; ++a) {
      Coords grid = at;
      grid.index.erase(grid.index.begin() + 1);
      grid.index.emplace_back(rank - 1 - a);  // coordinates stand in the order x, y, z
      grid.axis = -1;
      const GridAxis axis(c, wide, c.dim(c.in_type(0).shape[static_cast<size_t>(a)]));
      taps.push_back(taps_of(c, axis, c.b().let("g", kernel::cast({wide, 1}, c.load(1, grid))), mode));
    }
    const std::function<Expr(int, const Coords&)> sum = [&](int a, const Coords& in) -> Expr {
      if (a == rank) return kernel::cast({wide, 1}, c.load(0, in));
      Expr total;
      for (const WeightedTap& t : taps[static_cast<size_t>(a - 2)]) {
        const Coords next = in.with(a, t.tap.index);
        Expr value = sum(a + 1, t.tap.inside ? next.only(t.tap.inside) : next);
        if (t.weight) value = value * t.weight;
        total = total ? total + value : value;
      }
      return total;
    };
    c.store(at, sum(2, at));
  });
}

}  // namespace

OpDef define_grid_sample() {
  OpDef d;
  d.name = "GridSample";
  d.doc =
      "y[n, c, i, j] = x[n, c] at the position that grid[n, i, j] = (x, y) names, -1 and 1 being the image's borders; "
      "likewise for lines and volumes (ONNX GridSample, PyTorch grid_sample).";
  d.inputs = {{"x", "[N, C, H, W], [N, C, L] or [N, C, D, H, W]"}, {"grid", "[N, H', W', 2], last axis first"}};
  d.outputs = {{"y", "[N, C, H', W']"}};
  d.attributes = {
      optional("mode", AttrKind::string, "nearest, linear or cubic (not of volumes)", std::string("linear")),
      optional("padding", AttrKind::string, "what is outside: zeros, border or reflection", std::string("zeros")),
      optional("align_corners", AttrKind::integer,
               "1: -1 and 1 are the centres of the outermost elements, else their "
               "outer edges",
               int64_t{0})};
  d.traits = kEpilogueOk | kPure;
  d.dtypes = real_dtypes();
  d.infer = infer_grid_sample;
  d.lower = lower_grid_sample;
  d.flops = [](const ir::Node& n) { return Dim(16) * num_elements(n.output()->type.shape); };
  d.samples = [] {
    const auto how = [](std::string mode, std::string padding, int64_t corners) {
      return ir::Attributes{{"mode", std::move(mode)}, {"padding", std::move(padding)}, {"align_corners", corners}};
    };
    const std::vector<double> square = {1, 2, 3, 4}, points = {-1, -1, 1, 1, 0, 0, -2, 0};
    return std::vector<Sample>{
        {"by_hand",
         {f32({1, 1, 2, 2}), f32({1, 1, 4, 2})},
         how("linear", "zeros", 1),
         {square, points},
         {1, 4, 2.5, 1}},
        {"edges",
         {f32({1, 1, 2, 2}), f32({1, 1, 4, 2})},
         how("linear", "zeros", 0),
         {square, points},
         {0.25, 1, 2.5, 0}},
        {"border",
         {f32({1, 1, 2, 2}), f32({1, 1, 4, 2})},
         how("linear", "border", 0),
         {square, points},
         {1, 4, 2.5, 2}},
        {"reflection",
         {f32({1, 1, 2, 2}), f32({1, 1, 4, 2})},
         how("nearest", "reflection", 1),
         {square, points},
         {1, 4, 1, 1}},
        {"image", {f32({2, 20, 5, 7}), f32({2, 4, 3, 2})}, how("linear", "reflection", 0)},
        {"nearest", {f32({2, 3, 5, 7}), f32({2, 4, 3, 2})}, how("nearest", "zeros", 0)},
        {"cubic", {f32({1, 3, 5, 7}), f32({1, 4, 3, 2})}, how("cubic", "border", 1)},
        {"cubic_reflected", {f32({1, 2, 5, 7}), f32({1, 4, 3, 2})}, how("cubic", "reflection", 0)},
        {"line", {f32({2, 3, 9}), f32({2, 5, 1})}, how("linear", "zeros", 0)},
        {"volume", {f32({1, 2, 3, 4, 5}), f32({1, 2, 3, 2, 3})}, how("linear", "zeros", 0)},
        {"one", {f32({1, 1, 1, 1}), f32({1, 2, 2, 2})}, how("linear", "reflection", 1)},
    };
  };
  return d;
}

}  // namespace cuvil::ops
