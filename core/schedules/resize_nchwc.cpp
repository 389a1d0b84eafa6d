#include <algorithm>

#include "core/schedules/conv_problem.h"
#include "core/schedules/list.h"

namespace cuvil::schedules {

namespace {

/// The whole number of outputs per input along an image axis, if there is one.
std::optional<int64_t> factor_of(const Dim& in, const Dim& out) {
  for (int64_t f = 1; f <= 8; ++f)
    if (in * Dim(f) == out) return f;
  return {};
}

/// Whether output o takes input floor(o / factor): the roundings for which no position falls between two inputs.
bool takes_floor(const ir::Node& node) {
  const auto& coordinates = node.attr<std::string>("coordinates");
  const auto& nearest = node.attr<std::string>("nearest");
  if (coordinates == "asymmetric") return nearest == "floor";
  return coordinates == "half_pixel" && (nearest == "round_prefer_floor" || nearest == "round_prefer_ceil");
}

std::optional<std::string> refuse(const ops::Group& group, const TargetInfo& target) {
  if (!group.anchor || group.anchor->op != "Resize") return "not a resize";
  const ir::Node& node = *group.anchor;
  const ir::Type &x = node.input(0)->type, &y = node.output()->type;
  if (node.attr<std::string>("mode") != "nearest" || !takes_floor(node)) return "not plain repetition of pixels";
  if (x.rank() != 4) return "the image has rank " + std::to_string(x.rank()) + ", not 4";
  if (x.dtype != DType::f32) return "only f32 is scheduled";
  if (auto r = refuse_images(group, target)) return r;
  if (x.shape[0] != y.shape[0] || x.shape[1] != y.shape[1]) return "batch or channels change";
  const auto fh = factor_of(x.shape[2], y.shape[2]), fw = factor_of(x.shape[3], y.shape[3]);
  if (!fh || !fw) return "the factors are not whole numbers up to 8";
  if (node.has("scales")) {
    const auto& scales = node.attr<std::vector<double>>("scales");
    if (scales[2] != static_cast<double>(*fh) || scales[3] != static_cast<double>(*fw))
      return "the scales are not the ratios of the sizes";
  }
  return {};
}

kernel::Kernel build(const ops::Group& group, const TargetInfo& target, std::string kernel_name) {
  LowerContext c(group, target, std::move(kernel_name));
  kernel::Builder& b = c.b();
  const Shape &x = c.in_type(0).shape, &y = c.out_type().shape;
  const int64_t fh = *factor_of(x[2], y[2]), fw = *factor_of(x[3], y[3]);
  const int lanes = target.lanes_f32();
  const kernel::Buffer in = c.in_memory(0)->buffer();
  const Expr n = c.dim(x[0]), channels = c.dim(x[1]), h = c.dim(x[2]), w = c.dim(x[3]);
  const Expr blocks = kernel::ceildiv(channels, Expr(lanes));
  b.phase(n * blocks * h, [&](Expr task) {
    const Expr row = b.let("row", task % h), rest = b.let("rest", kernel::floordiv(task, h));
    const Expr block = b.let("block", rest % blocks), image = b.let("n", kernel::floordiv(rest, blocks));
    const Expr mask =
        x[1].divisible_by(lanes) ? Expr() : b.let("mask", kernel::lane_mask(block * Expr(lanes), channels, lanes));
    // Row by row of the output, so that stores run through memory in order.
    b.loop("i", Expr(fh), [&](Expr i) {
      b.loop("column", w, [&](Expr column) {
        const Expr value = b.let("value", kernel::load(in, {image, block, row, column, Expr(0)}, lanes));
        for (int64_t j = 0; j < fw; ++j)
          c.store(Coords{{image, block * Expr(lanes), row * Expr(fh) + i, column * Expr(fw) + Expr(j)}, 1, lanes, mask},
                  value);
      });
    });
  });
  return c.finish();
}

}  // namespace

const Schedule kResizeNchwc = {"resize_nchwc",
                               "Nearest-neighbour enlargement by whole factors: one load per input vector and row.",
                               refuse, nullptr, build};

}  // namespace cuvil::schedules
