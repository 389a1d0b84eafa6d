#include "core/schedules/conv_problem.h"

#include <algorithm>

#include "core/base/error.h"

namespace cuvil::schedules {

using kernel::Expr;

namespace {
std::optional<std::string> number(const Dim& dim, const char* what, int64_t& value) {
  const std::optional<int64_t> v = dim.as_const();
  if (!v) return std::string(what) + " is symbolic (" + dim.str() + ")";
  value = *v;
  return {};
}
}  // namespace

std::optional<std::string> read_conv(const ops::Group& group, ConvProblem& p) {
  const ir::Node& node = *group.anchor;
  const ir::Type& x = node.input(0)->type;
  const ir::Type& w = node.input(1)->type;
  const ir::Type& y = node.output()->type;
  if (x.rank() != 4) return "the image has rank " + std::to_string(x.rank()) + ", not 4";
  if (x.dtype != DType::f32 || w.dtype != DType::f32) return "only f32 is scheduled";
  p.n = x.shape[0], p.h = x.shape[2], p.w = x.shape[3];
  p.oh = y.shape[2], p.ow = y.shape[3];
  if (auto r = number(x.shape[1], "the number of input channels", p.ic)) return r;
  if (auto r = number(y.shape[1], "the number of output channels", p.oc)) return r;
  if (auto r = number(w.shape[2], "the kernel's height", p.kh)) return r;
  if (auto r = number(w.shape[3], "the kernel's width", p.kw)) return r;
  const auto& strides = node.attr<std::vector<int64_t>>("strides");
  const auto& dilations = node.attr<std::vector<int64_t>>("dilations");
  const auto& pads = node.attr<std::vector<int64_t>>("pads");
  p.sh = strides[0], p.sw = strides[1], p.dh = dilations[0], p.dw = dilations[1];
  p.pt = pads[0], p.pl = pads[1], p.pb = pads[2], p.pr = pads[3];
  p.groups = node.attr<int64_t>("groups");
  p.gic = p.ic / p.groups, p.goc = p.oc / p.groups;
  p.bias = node.input(2) != nullptr;
  return {};
}

bool reads_memory(const ops::Group& group, size_t input) {
  const ir::Value* value = group.anchor->input(input);
  return std::find(group.prologue.begin(), group.prologue.end(), value->producer) == group.prologue.end();
}

bool is_constant(const ops::Group& group, size_t input) {
  const ir::Value* value = group.anchor->input(input);
  if (ir::constant_of(value)) return true;
  if (group.node == group.anchor || group.node->regions.empty()) return false;
  const ir::Region& region = group.node->regions[0];
  for (size_t i = 0; i < region.params.size(); ++i)
    if (region.params[i].get() == value) return ir::constant_of(group.node->input(i)) != nullptr;
  return false;
}

const ir::Type& stored_type(const ops::Group& group) { return group.node->output()->type; }

std::optional<std::string> refuse_images(const ops::Group& group, const TargetInfo& target) {
  const ir::Layout wanted = ir::Layout::nchwc(4, target.lanes_f32());
  if (group.anchor->input(0)->type.layout != wanted) return "the input is not blocked as " + wanted.str(4);
  if (stored_type(group).layout != wanted) return "the output is not blocked as " + wanted.str(4);
  if (!reads_memory(group, 0) || !reads_memory(group, 1)) return "a producer is fused in front of it";
  return {};
}

std::optional<std::string> refuse_weight(const ops::Group& group, size_t input, const ir::Layout& wanted) {
  const ir::Type& type = group.anchor->input(input)->type;
  if (type.layout == wanted) return {};
  if (type.layout.is_plain() && is_constant(group, input)) return {};
  return "the weight is neither constant nor packed as " + wanted.str(type.rank());
}

std::vector<ColumnRun> column_runs(const ConvProblem& p, int64_t w, int64_t ow, int width) {
  std::vector<ColumnRun> runs;
  for (int64_t begin = 0; begin < ow; begin += width) {
    ColumnRun run;
    run.begin = begin;
    run.width = static_cast<int>(std::min<int64_t>(width, ow - begin));
    bool inside = true;
    for (int64_t kw = 0; kw < p.kw; ++kw) {
      std::vector<bool> taps;
      for (int x = 0; x < run.width; ++x) {
        const int64_t iw = (begin + x) * p.sw + kw * p.dw - p.pl;
        taps.push_back(iw >= 0 && iw < w);
        inside = inside && taps.back();
      }
      run.taps.push_back(std::move(taps));
    }
    if (inside) run.taps.clear();
    if (!runs.empty() && runs.back().width == run.width && runs.back().taps == run.taps)
      ++runs.back().count;
    else
      runs.push_back(std::move(run));
  }
  return runs;
}

std::pair<Expr, Expr> tap_range(const Expr& out, int64_t stride, int64_t dilation, int64_t pad, int64_t taps,
                                const Expr& extent) {
  // 0 <= out * stride + k * dilation - pad < extent
  const Expr first = out * Expr(stride) - Expr(pad);
  const Expr begin = kernel::max(Expr(0), kernel::ceildiv(-first, Expr(dilation)));
  const Expr end = kernel::min(Expr(taps), kernel::ceildiv(extent - first, Expr(dilation)));
  return {begin, end};
}

bool never_clipped(const Dim& in, const Dim& out, int64_t stride, int64_t dilation, int64_t pad, int64_t taps) {
  if (pad > 0) return false;
  const auto slack = (in - ((out - 1) * stride + (taps - 1) * dilation - pad + 1)).lower_bound();
  if (slack && *slack >= 0) return true;
  // Without padding every output was computed from taps inside by the shape rule, unless the end was padded.
  return pad == 0 && taps == 1 && stride == 1 && in == out;
}

std::pair<Expr, Expr> interior(const Expr& in, const Expr& out, int64_t stride, int64_t dilation, int64_t pad,
                               int64_t taps) {
  // First output whose tap 0 is at or after 0; last whose last tap is before `in`.
  const Expr first = kernel::min(out, Expr(pad > 0 ? (pad + stride - 1) / stride : 0));
  const Expr end = kernel::floordiv(in - Expr((taps - 1) * dilation - pad + 1), Expr(stride)) + Expr(1);
  return {first, kernel::max(first, kernel::min(out, end))};
}

}  // namespace cuvil::schedules
